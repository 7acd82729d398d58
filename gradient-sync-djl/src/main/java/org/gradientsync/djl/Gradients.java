package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A way to average the gradients of a model. */
abstract class Gradients implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Gradients.class);

  final GradientSync sync;
  final List<NDArray> arrays;

  Gradients(GradientSync sync, List<NDArray> arrays) {
    this.sync = sync;
    this.arrays = arrays;
  }

  /**
   * Chooses a way that all ranks can go. Collective.
   *
   * @param names of the parameters
   * @param arrays DJL's own gradients, into which backward passes add
   */
  static Gradients of(GradientSync sync, List<String> names, List<NDArray> arrays) {
    BiFunction<String, NDArray, DeviceBuffer> onGpu = null;
    String reason = null;
    Device device = arrays.get(0).getDevice();
    if (!device.isGpu() && !Replicas.onCuda(sync)) {
      reason = HostGradients.whyNotMoved(names, arrays);
    } else if (!device.isGpu() || !Replicas.onCuda(sync)) {
      reason =
          "training is on %s and the sync has %s; train on DataParallel.device(sync)"
              .formatted(device, sync.device().name());
    } else {
      try {
        onGpu = GpuArrays.of(sync, arrays)::wrap;
      } catch (UnavailableException e) {
        reason = e.getMessage();
      }
    }
    if (areAll(sync, onGpu != null)) {
      return new GpuGradients(sync, names, arrays, onGpu);
    }
    if (reason != null || onGpu != null) {
      log.warn(
          "gradients are copied through host memory: rank={}, reason={}",
          sync.rank(),
          reason != null ? reason : "another rank cannot average them on its GPU");
    }
    // Both average the same buckets, so each rank can have its own way.
    GradientBuckets buckets = buckets(sync, names, arrays);
    return reason != null || onGpu != null
        ? new CopiedGradients(sync, names, arrays, buckets)
        : new HostGradients(sync, arrays, buckets);
  }

  private static boolean areAll(GradientSync sync, boolean value) {
    int[] all = {value ? 1 : 0};
    sync.communicator().allReduce(IntBuffer.wrap(all), ReduceOp.MIN);
    return all[0] == 1;
  }

  static GradientBuckets buckets(GradientSync sync, List<String> names, List<NDArray> arrays) {
    List<Parameter> parameters = new ArrayList<>();
    for (int i = 0; i < arrays.size(); i++) {
      String name = names.get(i);
      NDArray array = arrays.get(i);
      parameters.add(new Parameter(name, HostCopy.gradientTypeOf(name, array), array.size()));
    }
    // DJL computes all gradients in one call, so there is nothing to overlap with.
    return GradientBuckets.builder(sync, parameters).overlap(false).build();
  }

  /**
   * Averages over all ranks, in DJL's gradients. Collective.
   *
   * @param factor what this rank's gradients are multiplied with before
   */
  final void average(double factor) {
    if (factor != 1) {
      for (NDArray gradient : arrays) {
        gradient.muli(factor);
      }
    }
    average();
  }

  abstract void average();

  /** Waits until they are averaged, or throws that a rank is lost. */
  void await() {}

  @Override
  public abstract void close();
}
