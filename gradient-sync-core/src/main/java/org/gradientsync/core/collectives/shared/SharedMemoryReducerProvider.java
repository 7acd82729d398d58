package org.gradientsync.core.collectives.shared;

import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Provides {@code shared}, for processes of one node that read each other's host memory. */
public final class SharedMemoryReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public SharedMemoryReducerProvider() {}

  @Override
  public String name() {
    return "shared";
  }

  @Override
  public int priority() {
    return 200;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!(context.device() instanceof HostDevice)) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    if (!isPossible(context)) {
      return Availability.no(
          context.communicator().nodeCount() == 1
              ? "the ranks are threads of one JVM and share its memory anyway"
              : "the ranks are on several nodes");
    }
    return NodeIdentity.canShareMemory();
  }

  /** Whether the ranks are processes of one node; the same answer on all of them. */
  public boolean isPossible(SyncContext context) {
    return context.communicator().nodeCount() == 1
        && !context.group().transport().name().equals("local");
  }

  @Override
  public Reducer create(SyncContext context) {
    ProcessGroup group = ProcessGroup.of(context.group());
    HostDevice device = (HostDevice) context.device();
    NodeMemory memory =
        NodeMemory.share(
            context.communicator(), rank -> SharedMemoryRendezvous.BYTES, device.share());
    SharedMemoryRendezvous rendezvous =
        new SharedMemoryRendezvous(memory, group.rank(), group.size(), () -> {});
    group.parts().arrivals().useRendezvous(rendezvous);
    return new SharedMemoryReducer(name(), group, rendezvous, device, memory);
  }
}
