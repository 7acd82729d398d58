package org.gradientsync.internal.collectives;

import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.host.SharedFiles;
import org.gradientsync.internal.matching.NodesRendezvous;
import org.gradientsync.internal.ranks.NodeLayout;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Provides {@code two-level}, for processes on several nodes with gradients in host memory. */
public final class TwoLevelReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public TwoLevelReducerProvider() {}

  @Override
  public String name() {
    return "two-level";
  }

  @Override
  public int priority() {
    return 150;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!(context.device() instanceof HostDevice)) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    NodeLayout layout = new NodeLayout(ProcessGroup.of(context.group()).ranks());
    if (layout.nodes() == 1) {
      return Availability.no("the ranks are on one node");
    }
    if (layout.most() == 1) {
      return Availability.no("each rank is on a node of its own");
    }
    if (!layout.isContiguous()) {
      return Availability.no(
          "the ranks of a node do not follow one another; start them node by node, for example with"
              + " mpirun --map-by slot");
    }
    return SharedFiles.availability();
  }

  @Override
  public Reducer create(SyncContext context) {
    ProcessGroup group = ProcessGroup.of(context.group());
    HostDevice device = (HostDevice) context.device();
    NodeLayout layout = new NodeLayout(group.ranks());
    NodesRendezvous rendezvous =
        RendezvousChoice.useNodes(group, context.communicator(), device.share());
    return new TwoLevelReducer(name(), group, rendezvous, device, layout, rendezvous.memory());
  }
}
