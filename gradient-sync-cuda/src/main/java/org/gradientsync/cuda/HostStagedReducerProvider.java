package org.gradientsync.cuda;

import org.gradientsync.collective.HostReducers;
import org.gradientsync.host.HostDevice;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Offers {@code host-staged}, which works wherever the ranks' gradients are in GPU memory. */
public final class HostStagedReducerProvider implements ReducerProvider {
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
    return new HostStagedReducer(context.group(), (CudaDevice) context.device(), host, inner);
  }
}
