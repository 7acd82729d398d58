package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.Set;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.SyncContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Provides {@code peer}, for GPUs of one node that reach each other's memory over NVLink. */
public final class PeerReducerProvider implements ReducerProvider {
  private static final Logger log = LoggerFactory.getLogger(PeerReducerProvider.class);

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
  public Set<String> settings() {
    return Set.of(
        "dev.cache", "overlap.sms", PeerSharing.SWITCH, "dev.peer.tuning", "dev.peer.algorithm");
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!(context.device() instanceof CudaDevice)) {
      return Availability.no(
          "the gradients are not in GPU memory: device=" + context.device().kind());
    }
    if (context.communicator().nodeCount() > 1) {
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
    RankGroup group = context.group();
    CudaDevice device = (CudaDevice) context.device();
    Gpu gpu = DriverAccess.gpu(device);
    boolean measures = context.settings().isOn("dev.peer.tuning", true);
    PeerMemory memory =
        PeerMemory.open(context.communicator(), gpu, PeerSharing.isAllowed(context.settings()));
    memory.sharing().prepareStreams(DriverAccess.stream(device.stream()));
    ByteBuffer[] pages = context.parts().memoryOfNode(context, PeerUnmapFlags.BYTES);
    PeerUnmapFlags unmapFlags = new PeerUnmapFlags(pages, group.rank(), group.size());
    PeerProgress progress = new PeerProgress(pages, group.rank(), group.size());
    PeerLayout layout = new PeerLayout(group.size());
    PeerMailbox mailbox =
        new PeerMailbox(DriverAccess.stream(device.stream()), memory, unmapFlags, layout);
    PeerBudget.Share share = PeerBudget.take(gpu.ordinal(), memory.sharing().turn());
    PeerReport report = null;
    PeerFinite finite = null;
    PeerPlanner planner = null;
    PeerReducer reducer = null;
    try {
      long[] places = {share.place()};
      memory.communicator().allReduce(LongBuffer.wrap(places), ReduceOp.MAX);
      int place = (int) places[0]; // the smallest share of any rank
      PeerTuning tuning =
          new PeerTuning(layout, group.size(), memory.sharing(), place, context.settings());
      requireSame(group, memory.communicator(), tuning, measures);
      String reason = "";
      try {
        report = new PeerReport(gpu);
        finite = context.settings().finite() ? new PeerFinite(group, gpu, progress) : null;
        long timeout = group.timeouts().timeoutNanos();
        planner =
            new PeerPlanner(
                gpu,
                mailbox,
                report,
                tuning,
                context.settings().wire().orElse(null),
                finite == null ? 0 : finite.deviceAddress(),
                group.rank(),
                group.size(),
                timeout);
        reducer =
            new PeerReducer(
                group,
                device,
                memory,
                unmapFlags,
                mailbox,
                report,
                planner,
                share,
                progress,
                finite);
      } catch (DeviceException e) {
        reason = e.getMessage();
      }
      Agreement.requireAll(memory.communicator(), reason);
      if (measures) {
        tune(context, memory.communicator(), reducer, layout, tuning, place);
      }
      return reducer;
    } catch (RuntimeException | Error e) {
      if (reducer != null) {
        Resources.closeAllAfter(e, reducer);
      } else {
        Resources.closeAllAfter(
            e,
            gpu::makeCurrent,
            planner,
            finite,
            report,
            memory,
            unmapFlags::setAllUnmapped,
            mailbox,
            share);
      }
      throw e;
    }
  }

  /**
   * Throws if the ranks' settings differ: different algorithms would wait for each other in vain.
   */
  private static void requireSame(
      RankGroup group, Communicator communicator, PeerTuning tuning, boolean measures) {
    long choice = tuning.choice() * 2L + (measures ? 1 : 0);
    long[] choices = {choice, -choice};
    communicator.allReduce(LongBuffer.wrap(choices), ReduceOp.MIN);
    if (choices[0] != -choices[1]) {
      throw new GradientSyncException(
          ("the ranks' settings differ: give gradientsync.dev.peer.algorithm, dev.peer.tuning and"
                  + " overlap.sms alike on all ranks, rank=%s, algorithm=%s, measures=%s")
              .formatted(group.rank(), tuning, measures));
    }
  }

  /** Sets the sizes that rank 0 cached in an earlier run. Without these, all ranks measure. */
  private static void tune(
      SyncContext context,
      Communicator communicator,
      PeerReducer reducer,
      PeerLayout layout,
      PeerTuning tuning,
      int place) {
    RankGroup group = context.group();
    if (group.size() == 1 || tuning.isForced()) {
      return;
    }
    Gpu gpu = DriverAccess.gpu(context.device());
    String name = tuning.sharing().nameOf(gpu.name());
    PeerTuningCache cache =
        new PeerTuningCache(
            context.settings(), name, gpu.api().driverVersion(), group.size(), place);
    long[] sizes = group.rank() == 0 ? cache.read(layout) : null;
    long[] known = sizes == null ? new long[2] : sizes;
    communicator.allReduce(LongBuffer.wrap(known), ReduceOp.MAX);
    if (known[1] == 0) {
      known = reducer.autotune(layout);
      if (known == null) {
        return;
      }
      if (group.rank() == 0) {
        cache.write(known);
      }
    }
    tuning.set(known[0], known[1]);
    if (group.rank() == 0) {
      log.debug("peer: {}, share {}", tuning, place);
    }
  }
}
