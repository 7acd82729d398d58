package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/**
 * Throws what the kernels of earlier calls have reported: why they could not finish, or values that
 * are not finite.
 */
final class PeerErrors {
  private final RankGroup group;
  private final PeerReport report;
  private final PeerNames names;
  private final PeerProgress progress;
  private final PeerFinite finite; // or null
  private final PeerOrder order;
  private final PeerFailure failure;
  private final PeerWatchdog watchdog;
  private volatile boolean reported;

  PeerErrors(
      RankGroup group,
      Gpu gpu,
      PeerReport report,
      PeerNames names,
      PeerProgress progress,
      PeerFinite finite,
      PeerOrder order) {
    this.group = group;
    this.report = report;
    this.names = names;
    this.progress = progress;
    this.finite = finite;
    this.order = order;
    failure = new PeerFailure(group, report, names);
    watchdog = new PeerWatchdog(group, gpu, progress, report);
  }

  /**
   * Throws the failure that a kernel has reported, once. After that the group is broken, and each
   * call throws. Runs before each call and after each wait of the host.
   */
  void check() {
    if (report.failure() == PeerReport.NONE || reported) {
      return;
    }
    synchronized (group) {
      if (reported || watchdog.hasThrown()) {
        return; // another thread has thrown it
      }
      reported = true;
      if (watchdog.isMismatch()) {
        throw group.mismatched(watchdog.table());
      }
      if (report.failure() == PeerReport.MISMATCH) {
        MismatchedCallException e = new MismatchedCallException(failure.table());
        group.broken("the ranks' calls did not match on the GPU", e);
        group.thrownByAll(e);
        throw e; // this call throws the table, later ones that the group is broken
      }
      if (report.failure() == PeerReport.TIMED_OUT) {
        throw group.timedOut(failure.cause());
      }
      throw group.broken("stopped: " + failure.cause(), null);
    }
  }

  /**
   * Begins a call that all ranks make. Throws on all ranks, in the same call, if an earlier one had
   * values that were not finite. The caller holds the group's lock.
   */
  void begin() {
    if (finite != null && finite.begins()) {
      throw finite.take(names, order::await);
    }
  }

  /** Throws after the host has waited for the GPU. */
  void afterWaiting() {
    if (reported) {
      return; // so that other buffers can still be read
    }
    check();
    order.settle();
    if (finite != null && finite.hasFound()) {
      synchronized (group) {
        if (finite.hasFound()) { // otherwise another thread has thrown it meanwhile
          finite.announce(); // to ranks that have not waited for these calls
          throw finite.take(names, order::await);
        }
      }
    }
  }

  /**
   * Throws on close what no call has thrown yet. The calls are done.
   *
   * @param broken whether the program has seen why the kernels had to stop
   */
  void throwUnseen(boolean broken) {
    Resources.closeAll(this::throwFound, broken ? null : this::check);
  }

  private void throwFound() {
    if (finite != null && finite.hasFound()) {
      throw finite.take(names, () -> {});
    }
  }

  List<String> state() {
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add("peer: failure=" + report.failure() + (reported ? ", thrown" : ""));
    for (int peer = 0; peer < group.size(); peer++) {
      lines.add("  rank " + peer + ": " + progress.textOf(peer));
    }
    return lines;
  }

  /** Ends the watchdog. If the group is broken, ends this rank's kernels: no other rank joins. */
  void stop(boolean broken) {
    watchdog.close();
    if (broken) {
      report.stop();
    }
  }
}
