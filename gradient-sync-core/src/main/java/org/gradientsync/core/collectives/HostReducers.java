package org.gradientsync.core.collectives;

import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.SyncContext;

/** Reducers for host memory, for backends that stage other memory there. */
public final class HostReducers {
  private HostReducers() {}

  /**
   * The fastest reducer that all ranks can use. Collective.
   *
   * @param context the group, and a {@link org.gradientsync.core.host.HostDevice}
   * @return a reducer that the caller closes
   */
  public static Reducer fastest(SyncContext context) {
    SharedMemoryReducerProvider shared = new SharedMemoryReducerProvider();
    TwoLevelReducerProvider twoLevel = new TwoLevelReducerProvider();
    try {
      if (shared.isPossible(context)) {
        return shared.create(context);
      }
      if (twoLevel.whyImpossible(context).isEmpty()) {
        return twoLevel.create(context);
      }
    } catch (UnavailableException e) {
      // on all ranks; messages always work
    }
    if (context.communicator().nodeCount() > 1) {
      RendezvousChoice.choose(context.group(), context.settings(), false);
    }
    return new MessageReducer("messages", context.group(), context.device());
  }
}
