package org.gradientsync.cuda;

import org.gradientsync.UnavailableException;
import org.gradientsync.collective.HostReducers;
import org.gradientsync.collective.NodeMemory;
import org.gradientsync.host.HostDevice;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Offers {@code host-staged}, which works wherever the ranks' gradients are in GPU memory. */
public final class HostStagedReducerProvider implements ReducerProvider {
  private static final Logger log = LoggerFactory.getLogger(HostStagedReducerProvider.class);

  /** For the service loader. */
  public HostStagedReducerProvider() {}

  @Override
  public String name() {
    return HostStagedReducer.NAME;
  }

  @Override
  public int priority() {
    return 300;
  }

  @Override
  public Availability availability(SyncContext context) {
    return context.device() instanceof CudaDevice
        ? Availability.yes()
        : Availability.no("the gradients are not in GPU memory: device=" + context.device().kind());
  }

  @Override
  public Reducer create(SyncContext context) {
    HostDevice host = new HostDevice();
    Reducer inner =
        HostReducers.fastest(new SyncContext(context.group(), host, context.settings()));
    NodeMemory node = null;
    if (NodeMemory.isPossible(context.group())) {
      try {
        node = NodeMemory.share(context.group(), StagedOnGpu.bytes(context.group().size()));
      } catch (UnavailableException e) {
        log.warn("the CPU adds instead of the GPUs: {}", e.getMessage());
      }
    }
    return new HostStagedReducer(context.group(), (CudaDevice) context.device(), host, inner, node);
  }
}
