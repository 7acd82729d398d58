package org.gradientsync.cuda;

import org.gradientsync.UnavailableException;
import org.gradientsync.spi.DeviceRequest;

/**
 * Chooses the GPU of a rank: the one that the setting {@code cuda.device} names, or else its local
 * rank modulo the number of GPUs. Only GPUs that {@code CUDA_VISIBLE_DEVICES} makes visible have
 * numbers.
 *
 * @param ordinal the GPU's number
 * @param shared whether the node has more ranks than GPUs; false if the setting names the GPU
 */
record DeviceMapping(int ordinal, boolean shared) {
  static DeviceMapping of(DeviceRequest request, int gpus) {
    String asked = request.settings().get("cuda.device").orElse(null);
    if (asked == null) {
      return new DeviceMapping(request.localRank() % gpus, request.localSize() > gpus);
    }
    int ordinal;
    try {
      ordinal = Integer.parseInt(asked);
    } catch (NumberFormatException e) {
      throw new UnavailableException(
          "not a GPU's number: gradientsync.cuda.device=" + asked + ", rank=" + request.rank(), e);
    }
    if (ordinal < 0 || ordinal >= gpus) {
      throw new UnavailableException(
          "no such GPU: gradientsync.cuda.device=%s, gpus=%s, rank=%s"
              .formatted(asked, gpus, request.rank()));
    }
    return new DeviceMapping(ordinal, false);
  }
}
