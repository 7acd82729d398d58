package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.cuda.internal.driver.DeviceWatch;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks ten times a second, while this rank waits on the host or for its GPU, whether the other
 * ranks can still come, and which are late. Kernels detect mismatches between kernels themselves.
 * The watchdog detects that one rank waits on its host while another waits for its GPU, that a rank
 * has died or left, and interrupts. Shorter waits cost nothing.
 */
final class PeerWatchdog implements DeviceWatch, AutoCloseable {
  /** Checks in a row that must find a mismatch: by then each rank has published what it does. */
  private static final int CHECKS = 3;

  private static final Logger log = LoggerFactory.getLogger(PeerWatchdog.class);

  private final RankGroup group;
  private final Gpu gpu;
  private final PeerProgress progress;
  private final PeerReport report;
  private final Runnable onHost = this::whileWaitingOnHost;
  private int mismatches;
  private int givenUp; // looks in a row that found a rank that has given up
  private long warnedAt; // the number of calls at the last warning
  private volatile boolean thrown;

  PeerWatchdog(RankGroup group, Gpu gpu, PeerProgress progress, PeerReport report) {
    this.group = group;
    this.gpu = gpu;
    this.progress = progress;
    this.report = report;
    group.addCheck(onHost);
    gpu.waits().watch(this);
  }

  /** Whether the watchdog has thrown a failure, so that the group is broken. */
  boolean hasThrown() {
    return thrown;
  }

  boolean isMismatch() {
    return progress.isMismatch();
  }

  /** Lists what each rank does, as far as it has published that. */
  String table() {
    StringBuilder text =
        new StringBuilder(
            "the ranks' calls do not match, rank="
                + group.rank()
                + ", some wait on the host and others for their GPU:");
    for (int peer = 0; peer < group.size(); peer++) {
      text.append("\n  rank ").append(peer).append(": ").append(progress.textOf(peer));
    }
    return text.toString();
  }

  private void whileWaitingOnHost() {
    progress.waits(
        group.deviceCalls().count(), group.deviceCalls().met(), group.deviceCalls().current());
    lookForMismatch();
  }

  @Override
  public void whileWaiting(long nanos) {
    if (thrown || report.failure() != PeerReport.NONE) {
      return; // the kernels are about to end
    }
    progress.say("waits for its GPU in " + group.deviceCalls().current());
    lookForMismatch();
    if (Thread.currentThread().isInterrupted()
        && group.size() > 1
        && group.deviceCalls().pending() > 0) {
      giveUp();
      throw group.broken("interrupted while waiting for the GPU", null);
    }
    List<Integer> late = new ArrayList<>();
    for (int peer = 0; peer < group.size(); peer++) {
      if (!group.isAlive(peer)) {
        giveUp();
        throw group.broken(
            group.name(peer) + " has died, waited=" + Amounts.time(nanos) + " for the GPU", null);
      }
      if (peer != group.rank() && isLate(peer)) {
        late.add(peer);
        String left = group.whyLeft(peer);
        // Check again, because the rank may have enqueued the call before it left. A rank that no
        // longer counts may have, too.
        if (!left.isEmpty() && isLate(peer) && progress.enqueuedBy(peer) >= 0) {
          giveUp();
          throw group.broken(
              group.name(peer) + " has left: " + left + ", before its GPU came", null);
        }
      }
    }
    lookForGivenUp(late);
    if (nanos > group.timeouts().lateNanos()
        && warnedAt != group.deviceCalls().count()
        && !late.isEmpty()) {
      warnedAt = group.deviceCalls().count();
      log.warn(
          "rank {} has waited {} for its GPU, which waits for {}: in={}",
          group.rank(),
          Amounts.time(group.timeouts().late()),
          group.names(late),
          group.deviceCalls().current());
    }
  }

  private boolean isLate(int peer) {
    return progress.enqueuedBy(peer) < group.deviceCalls().count();
  }

  /** Later than this rank finds itself that calls do not match, for which another gives up, too. */
  private void lookForGivenUp(List<Integer> late) {
    int gone = late.stream().filter(group::hasGivenUp).findFirst().orElse(RankGroup.NO_RANK);
    givenUp = gone == RankGroup.NO_RANK ? 0 : givenUp + 1;
    if (givenUp > 2 * CHECKS && isLate(gone) && progress.enqueuedBy(gone) >= 0) {
      giveUp();
      throw group.broken(
          group.name(gone) + " gave up in the middle of a call: " + group.whyGivenUp(gone), null);
    }
  }

  private void lookForMismatch() {
    if (!progress.isMismatch()) {
      mismatches = 0;
    } else if (++mismatches >= CHECKS) {
      giveUp();
      throw group.mismatched(table());
    }
  }

  /** Ends this rank's kernels, which notify the other ranks' kernels. */
  private void giveUp() {
    thrown = true;
    report.stop();
  }

  @Override
  public void close() {
    group.removeCheck(onHost);
    gpu.waits().unwatch(this);
  }
}
