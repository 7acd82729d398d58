package org.gradientsync.cuda;

import java.util.Set;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens the GPU that a rank uses. */
public final class CudaDeviceProvider implements DeviceProvider {
  private static final Logger log = LoggerFactory.getLogger(CudaDeviceProvider.class);

  /** Called by the service loader. */
  public CudaDeviceProvider() {}

  @Override
  public String kind() {
    return CudaDevice.KIND;
  }

  @Override
  public int priority() {
    return 100;
  }

  @Override
  public Set<String> settings() {
    return Set.of("cuda.device", "dev.cuda.kernels");
  }

  @Override
  public Availability availability(DeviceRequest request) {
    try {
      DeviceMapping.of(request, CudaLibrary.api().deviceCount());
      return Availability.yes();
    } catch (UnavailableException e) {
      return Availability.no(e.getMessage());
    }
  }

  @Override
  public BackendDevice open(DeviceRequest request) {
    CudaApi api = CudaLibrary.api();
    int gpus = api.deviceCount(); // before opening: an exception later would leave the device open
    DeviceMapping mapping = DeviceMapping.of(request, gpus);
    CudaDevice device = new CudaDevice(api, mapping.ordinal());
    // CUDA_VISIBLE_DEVICES may show each rank only its own GPU, so seeing one GPU does not prove
    // that ranks share it.
    boolean mayBeOwnGpu = gpus == 1 && System.getenv("CUDA_VISIBLE_DEVICES") != null;
    if (mapping.shared() && !mayBeOwnGpu) {
      log.warn(
          "ranks share a GPU: rank={}, localSize={}, gpus={}, device={}",
          request.rank(),
          request.localSize(),
          gpus,
          device);
    }
    log.info("rank {} takes GPU {}: {}", request.rank(), mapping.ordinal(), device);
    return device;
  }
}
