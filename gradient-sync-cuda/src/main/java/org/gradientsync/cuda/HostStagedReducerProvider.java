package org.gradientsync.cuda;

import org.gradientsync.UnavailableException;
import org.gradientsync.collective.Agreement;
import org.gradientsync.collective.Group;
import org.gradientsync.collective.GroupCommunicator;
import org.gradientsync.collective.HostReducers;
import org.gradientsync.collective.NodeMemory;
import org.gradientsync.host.HostDevice;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
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
    return agreed(context.group(), (CudaDevice) context.device(), host, inner, node);
  }

  /** On all ranks or on none: the others would wait for one that cannot have it. */
  private static Reducer agreed(
      Group group, CudaDevice device, HostDevice host, Reducer inner, NodeMemory node) {
    HostStagedReducer reducer = null;
    String reason = "";
    try {
      reducer = new HostStagedReducer(group, device, host, inner, node);
    } catch (CudaException e) {
      reason = e.getMessage();
    }
    try {
      Agreement.requireAll(new GroupCommunicator(group), reason);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, reducer, inner, host);
      throw e;
    }
    return reducer;
  }
}
