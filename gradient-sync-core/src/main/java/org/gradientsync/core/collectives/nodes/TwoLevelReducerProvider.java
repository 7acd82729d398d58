package org.gradientsync.core.collectives.nodes;

import org.gradientsync.SumOrder;
import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.collectives.messages.RendezvousChoice;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.MessageRendezvous;
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
    String impossible = whyImpossible(context);
    return impossible.isEmpty() ? NodeIdentity.canShareMemory() : Availability.no(impossible);
  }

  /** Why the placement of the ranks rules it out, or an empty text; the same on all of them. */
  public String whyImpossible(SyncContext context) {
    NodeLayout layout = new NodeLayout(ProcessGroup.of(context.group()).ranks());
    if (layout.nodes() == 1) {
      return "the ranks are on one node";
    }
    if (layout.most() == 1) {
      return "each rank is on a node of its own, so there is nothing to share";
    }
    return layout.isContiguous()
        ? ""
        : "the ranks of a node do not follow one another; start them node by node, for example with"
            + " mpirun --map-by slot";
  }

  @Override
  public Reducer create(SyncContext context) {
    return create(context, TwoLevelSizes.USUAL);
  }

  /** For tests, with other sizes. */
  Reducer create(SyncContext context, TwoLevelSizes sizes) {
    ProcessGroup group = ProcessGroup.of(context.group());
    HostDevice device = (HostDevice) context.device();
    NodeLayout layout = new NodeLayout(group.ranks());
    SumOrder order = context.settings().order();
    MessageRendezvous rendezvous =
        RendezvousChoice.useNodes(
            group, context.communicator(), device.share(), order == SumOrder.ANY);
    return new TwoLevelReducer(
        name(), group, rendezvous, device, layout, rendezvous.memory(), order, sizes);
  }
}
