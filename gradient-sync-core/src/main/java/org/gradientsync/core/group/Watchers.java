package org.gradientsync.core.group;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntPredicate;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.diagnosis.DeadlockDetector;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.Probe;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a rank looks at while it waits for another one. */
final class Watchers {
  /** Looks at one thing. */
  private interface Watcher {
    /** Throws if the wait must end. */
    void look(LongWait wait);
  }

  /** When a wait is long. Multiplied by the number of ranks per processor, up to the maximum. */
  private static final long LONG_NANOS = Duration.ofMillis(100).toNanos();

  private static final long MAX_LONG_NANOS = Duration.ofSeconds(2).toNanos();
  private static final long LOOK_NANOS = Duration.ofMillis(10).toNanos();
  private static final long CHECK_NANOS = Duration.ofMillis(100).toNanos();
  private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();
  private static final long OTHER_GRACE_NANOS = Duration.ofSeconds(2).toNanos();
  private static final int LONG_WAITS = 5;

  /** Ranks on other nodes that have arrived in a late call have said so by then. */
  private static final long INDIRECT_NANOS = Duration.ofMillis(500).toNanos();

  private static final int NO_RANK = RankMap.NO_RANK;
  private static final Logger log = LoggerFactory.getLogger(Wait.class);

  final List<Runnable> checks = new CopyOnWriteArrayList<>();
  private final Watcher[] watchers = {
    this::lookForInterrupt,
    this::lookForEnd,
    this::lookForDeparted,
    this::lookForDeadlockAtTimes,
    this::lookForDeadAtTimes,
    this::lookAtDeadline,
    this::warnIfLate
  };
  private final WatchedGroup group;
  private final DepartureNotices departures;
  private final GroupState state;
  private final DeadlockDetector detector;
  private final long longNanos;
  private final long otherGraceNanos;
  private final IntPredicate hasNotFinished; // this rank's current collective
  private final IntPredicate missing; // in the current rendezvous

  // Of the current wait; times are its duration then.
  private boolean left; // whether the awaited rank has
  private int gone; // the rank that ends the wait, or NO_RANK
  private long goneSince;
  private long searched; // for a deadlock
  private boolean canSearch;
  private long checked;
  private boolean warned;

  Watchers(WatchedGroup group, GroupState state, DeadlockDetector detector, int ranksOnNode) {
    this.group = group;
    this.state = state;
    this.detector = detector;
    int crowd = Math.max(1, ranksOnNode / Runtime.getRuntime().availableProcessors());
    longNanos = Math.min(MAX_LONG_NANOS, LONG_NANOS * crowd);
    // Ranks that share a processor pass on late what others have done before they left.
    otherGraceNanos = Math.max(OTHER_GRACE_NANOS, LONG_WAITS * longNanos);
    departures = group.liveness().departures();
    hasNotFinished = peer -> !departures.hasFinished(peer, group.calls().met());
    missing = peer -> !group.arrivals().hasArrived(peer);
  }

  /** A wait gets long. */
  void begin() {
    left = false;
    gone = NO_RANK;
    searched = 0;
    canSearch = true;
    checked = 0;
    warned = false;
  }

  /** Throws if the wait must end. */
  void look(LongWait wait) {
    for (Watcher watcher : watchers) {
      watcher.look(wait);
    }
  }

  private void lookForEnd(LongWait wait) {
    state.requireNotEnding();
  }

  private void lookForDeadlockAtTimes(LongWait wait) {
    if (wait.waited() - searched > LOOK_NANOS && (left || wait.waited() > longNanos)) {
      searched = wait.waited();
      lookForDeadlock(wait);
    }
  }

  private void lookForDeadAtTimes(LongWait wait) {
    if (wait.waited() - checked > CHECK_NANOS) {
      checked = wait.waited();
      checks.forEach(Runnable::run);
      lookForDead(wait);
    }
  }

  private void lookForInterrupt(LongWait wait) {
    if (Thread.currentThread().isInterrupted() && !state.isOver(wait)) {
      throw state.broken("interrupted while waiting for " + group.ranks().name(wait.peer()), null);
    }
  }

  /**
   * The awaited rank, or another one that the call needs, has left or given up. What it has done
   * before, its own notice, or a word about a cycle of waits may still come. If it had finished the
   * call, what it has sent is on its way, however slow that is.
   */
  private void lookForDeparted(LongWait wait) {
    int peer = wait.peer();
    left = left || hasLeft(peer);
    WaitPhase phase = wait.phase();
    boolean isCollective = phase == WaitPhase.RENDEZVOUS || phase == WaitPhase.DATA;
    boolean finished = left && isCollective && !hasNotFinished.test(peer);
    int before = gone;
    if (left && !finished) {
      gone = peer;
    } else if (finished) { // it may have waited for one that has failed, or left in the middle
      gone = departures.otherGone(true, hasNotFinished);
    } else {
      boolean meets = phase == WaitPhase.RENDEZVOUS && !group.arrivals().isPair();
      gone = departures.otherGone(meets, missing);
    }
    goneSince = gone == before ? goneSince : wait.waited();
    long grace = left && !finished ? GRACE_NANOS : otherGraceNanos;
    if (gone != NO_RANK && wait.waited() - goneSince > grace && !state.isOver(wait)) {
      lookForDeadlock(wait);
      throw state.lost(gone, null);
    }
  }

  private boolean hasLeft(int peer) {
    try {
      return group.arrivals().isAbandoned(peer) || departures.hasLeftOrFailed(peer);
    } catch (RuntimeException e) { // of any transport
      throw state.failed(peer, e);
    }
  }

  /** The wait is part of a cycle of waits, or depends on one. */
  private void lookForDeadlock(LongWait wait) {
    if (wait.phase() == WaitPhase.DATA || !canSearch) {
      return;
    }
    Probe cycle;
    try {
      cycle = detector.look(wait);
    } catch (RuntimeException | OutOfMemoryError e) {
      canSearch = false; // keep waiting
      log.debug("rank {} cannot look who waits for whom", group.rank(), e);
      return;
    }
    if (cycle != null) {
      throw state.mismatched("the ranks wait for each other, " + cycle.describe(group));
    }
  }

  /**
   * A rank has died without a notice: the one that this rank waits for; or, if that is on another
   * node, which cannot see deaths here, one that it may be waiting for itself.
   */
  private void lookForDead(LongWait wait) {
    int dead = deadWhileWaitingFor(wait.peer(), wait.waited());
    if (dead != NO_RANK && !state.isOver(wait)) {
      throw state.broken(
          "%s %s, lastFinished=%s, waited=%s"
              .formatted(
                  group.ranks().name(dead),
                  group.liveness().fate(dead),
                  group.calls().lastFinished(),
                  Amounts.time(wait.waited())),
          null);
    }
  }

  private int deadWhileWaitingFor(int peer, long waited) {
    if (!group.liveness().isAlive(peer)) {
      return peer;
    }
    boolean isDirect = group.ranks().isNear(peer) || group.arrivals().isPair();
    return isDirect || waited < INDIRECT_NANOS ? NO_RANK : group.liveness().diedSilently();
  }

  private void lookAtDeadline(LongWait wait) {
    if (wait.waited() > wait.timeouts().timeoutNanos() && !state.isOver(wait)) {
      String late = group.arrivals().describeLate(wait.peer(), state::test);
      throw state.timedOut(late + ", waited=" + Amounts.time(wait.timeouts().timeout()));
    }
  }

  /** Warns of a rank that is late, once in a wait. */
  private void warnIfLate(LongWait wait) {
    if (!warned && wait.waited() > wait.timeouts().lateNanos()) {
      warned = true;
      log.warn(
          "rank {} has waited {} for {}, lastFinished={}, {}",
          group.rank(),
          Amounts.time(wait.timeouts().late()),
          group.arrivals().describeAwaited(wait.peer(), state::test),
          group.calls().lastFinished(),
          group.during());
    }
  }
}
