package org.gradientsync.cuda;

import java.nio.LongBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.collective.Group;
import org.gradientsync.collective.NodeMemory;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Offers {@code peer}: GPUs of one node that reach each other's memory over NVLink. */
public final class PeerReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public PeerReducerProvider() {}

  @Override
  public String name() {
    return PeerReducer.NAME;
  }

  @Override
  public int priority() {
    return 400;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!(context.device() instanceof CudaDevice)) {
      return Availability.no(
          "the gradients are not in GPU memory: device=" + context.device().kind());
    }
    if (!NodeMemory.isPossible(context.group())) {
      return Availability.no("the ranks are on several nodes");
    }
    if (context.group().size() > PeerLayout.MAX_RANKS) {
      return Availability.no(
          "too many ranks: ranks=" + context.group().size() + ", most=" + PeerLayout.MAX_RANKS);
    }
    return Availability.yes();
  }

  @Override
  public Reducer create(SyncContext context) {
    Group group = context.group();
    CudaDevice device = (CudaDevice) context.device();
    PeerPaths paths = PeerPaths.open(group, device);
    PeerLedger ledger =
        new PeerLedger(NodeMemory.share(group, PeerLedger.BYTES), group.rank(), group.size());
    PeerLayout layout = new PeerLayout(group.size());
    PeerMailbox mailbox = new PeerMailbox(device, paths, ledger, layout);
    PeerBudget.Share share = PeerBudget.take(device.ordinal());
    long[] parts = {share.parts()};
    paths.communicator().allReduce(LongBuffer.wrap(parts), ReduceOp.MAX);
    PeerTuning tuning = new PeerTuning(layout, group.size(), (int) parts[0], context.settings());
    PeerReport report = new PeerReport(device);
    PeerPlanner planner =
        new PeerPlanner(
            device,
            mailbox,
            report,
            tuning,
            group.rank(),
            group.size(),
            Math.min(group.timeout().toSeconds(), Long.MAX_VALUE / 2_000_000_000L) * 1_000_000_000L
                + group.timeout().getNano());
    return new PeerReducer(group, device, paths, ledger, mailbox, report, planner, share);
  }
}
