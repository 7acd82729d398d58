package org.gradientsync.cuda.internal.staged;

import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.Agreement;
import org.gradientsync.core.collectives.GroupCommunicator;
import org.gradientsync.core.collectives.HostReducers;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.matching.NodeMemory;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.SyncContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Provides {@code host-staged}, which works whenever the gradients are in GPU memory. */
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
    RankGroup group = context.group();
    Resources parts = new Resources();
    try {
      HostDevice host = parts.add(new HostDevice());
      Reducer inner =
          parts.add(
              HostReducers.fastest(
                  new SyncContext(group, new GroupCommunicator(group), host, context.settings())));
      NodeMemory node = node(group);
      HostStagedReducer reducer = null;
      String reason = "";
      try {
        reducer =
            parts.add(
                new HostStagedReducer(
                    group, DriverAccess.gpu(context.device()), host, inner, node));
      } catch (DeviceException e) {
        reason = e.getMessage();
      }
      // All ranks or none get it: the others would wait for a rank that failed.
      Agreement.requireAll(new GroupCommunicator(group), reason);
      return reducer;
    } catch (RuntimeException | Error e) {
      parts.closeAfter(e);
      throw e;
    }
  }

  /** The memory in which the GPUs stage, or null if it is not available. */
  private static NodeMemory node(RankGroup group) {
    try {
      return NodeMemory.isPossible(new GroupCommunicator(group))
          ? NodeMemory.share(new GroupCommunicator(group), StagedOnGpu.bytes(group.size()))
          : null;
    } catch (UnavailableException e) {
      log.warn("the CPU adds instead of the GPUs: {}", e.getMessage());
      return null;
    }
  }
}
