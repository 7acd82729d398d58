package org.gradientsync.core.group;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntPredicate;
import java.util.function.LongConsumer;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.Probe;
import org.gradientsync.core.diagnosis.WorkerThread;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.Message;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a long wait looks at from time to time. A watcher throws if the wait must end. */
final class Watchers {
  // When a wait is long. Multiplied by the number of ranks per processor, up to the maximum.
  private static final long LONG_NANOS = Duration.ofMillis(100).toNanos();
  private static final long MAX_LONG_NANOS = Duration.ofSeconds(2).toNanos();
  private static final long SEARCH_NANOS = Duration.ofMillis(10).toNanos();
  private static final long CHECK_NANOS = Duration.ofMillis(100).toNanos();
  private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();
  private static final long OTHER_GRACE_NANOS = Duration.ofSeconds(2).toNanos();
  private static final int LONG_WAITS = 5;

  // How long a rank on another node may take to announce that it has arrived.
  private static final long INDIRECT_NANOS = Duration.ofMillis(500).toNanos();
  private static final int NO_RANK = RankMap.NO_RANK;
  private static final Logger log = LoggerFactory.getLogger(Wait.class);

  final List<Runnable> checks = new CopyOnWriteArrayList<>(); // which throw
  private final LongConsumer[] watchers = {
    this::lookForInterrupt,
    this::lookForEnd,
    this::lookForDeparted,
    this::lookForDeadlock,
    this::lookForDead,
    this::lookAtDeadline,
    this::warnIfLate
  };
  private final GroupParts group;
  private final GroupState state;
  private final DepartureNotices departures;
  private final LongWait wait;
  private final long longNanos;
  private final long otherGraceNanos;
  private final Message hasLeft; // the awaited rank, or has given up
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

  Watchers(GroupParts group, GroupState state, LongWait wait, int ranksOnNode) {
    this.group = group;
    this.state = state;
    this.wait = wait;
    int crowd = Math.max(1, ranksOnNode / Runtime.getRuntime().availableProcessors());
    longNanos = Math.min(MAX_LONG_NANOS, LONG_NANOS * crowd);
    // Ranks that share a processor pass on late what others have done before they left.
    otherGraceNanos = Math.max(OTHER_GRACE_NANOS, LONG_WAITS * longNanos);
    departures = group.liveness().departures();
    hasLeft =
        () ->
            group.arrivals().rendezvous().abandoned(wait.peer())
                || departures.hasLeftOrFailed(wait.peer());
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

  /** Throws if the wait, which has lasted for some nanoseconds, must end. */
  void look(long waited) {
    for (LongConsumer watcher : watchers) {
      watcher.accept(waited);
    }
  }

  private boolean isOver() {
    return state.test(wait.message(), wait.peer());
  }

  private void lookForInterrupt(long waited) {
    if (Thread.currentThread().isInterrupted() && !isOver()) {
      String awaited = group.ranks().name(wait.peer());
      throw state.broken(WorkerThread.interruption() + " while waiting for " + awaited, null);
    }
  }

  private void lookForEnd(long waited) {
    state.requireNotEnding();
  }

  /**
   * The awaited rank, or another one that the call needs, has left or given up. Messages that it
   * sent before, its notice, or news of a cycle of waits may still arrive. If it had finished the
   * call, all that it sent will arrive, however slowly.
   */
  private void lookForDeparted(long waited) {
    int peer = wait.peer();
    left = left || state.test(hasLeft, peer);
    WaitPhase phase = wait.phase();
    boolean isMeeting = phase == WaitPhase.SEND || phase == WaitPhase.RECEIVE; // of two ranks
    boolean finished = left && !isMeeting && !hasNotFinished.test(peer);
    int before = gone;
    if (left && !finished) {
      gone = peer;
    } else if (finished) { // it may have waited for one that has failed, or left in the middle
      gone = departures.otherGone(true, hasNotFinished);
    } else {
      gone = departures.otherGone(phase == WaitPhase.RENDEZVOUS, missing);
    }
    goneSince = gone == before ? goneSince : waited;
    long grace = left && !finished ? GRACE_NANOS : otherGraceNanos;
    if (gone != NO_RANK && waited - goneSince > grace && !isOver()) {
      search();
      throw state.lost(gone, null);
    }
  }

  private void lookForDeadlock(long waited) {
    if (waited - searched > SEARCH_NANOS && (left || waited > longNanos)) {
      searched = waited;
      search();
    }
  }

  /** Throws if the wait is part of a cycle of waits, or depends on one. */
  private void search() {
    if (wait.phase() == WaitPhase.DATA || !canSearch) {
      return;
    }
    Probe cycle;
    try {
      cycle = wait.findCycle();
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
  private void lookForDead(long waited) {
    if (waited - checked <= CHECK_NANOS) {
      return;
    }
    checked = waited;
    checks.forEach(Runnable::run);
    int dead = wait.peer();
    if (group.liveness().isAlive(dead)) {
      boolean isDirect = group.ranks().isNear(dead) || group.arrivals().isPair();
      dead = isDirect || waited < INDIRECT_NANOS ? NO_RANK : group.liveness().diedSilently();
    }
    if (dead != NO_RANK && !isOver()) {
      if (departures.hasLeftOrFailed(dead)) { // it has said why, and its process has ended since
        throw state.lost(dead, null);
      }
      String fate = group.ranks().name(dead) + " " + group.liveness().fate(dead);
      String finished = ", lastFinished=" + group.calls().lastFinished();
      throw state.broken(fate + finished + ", waited=" + Amounts.time(waited), null);
    }
  }

  private void lookAtDeadline(long waited) {
    if (waited > wait.timeouts().timeoutNanos() && !isOver()) {
      String late = group.arrivals().describeLate(wait.peer(), state::test);
      throw state.timedOut(late + ", waited=" + Amounts.time(wait.timeouts().timeout()));
    }
  }

  /** Warns of a rank that is late, once in a wait. */
  private void warnIfLate(long waited) {
    if (!warned && waited > wait.timeouts().lateNanos()) {
      warned = true;
      String late = group.arrivals().describeAwaited(wait.peer(), state::test);
      String during = ", lastFinished=" + group.calls().lastFinished() + ", " + group.during();
      String time = Amounts.time(wait.timeouts().late());
      log.warn("rank {} has waited {} for {}{}", group.rank(), time, late, during);
    }
  }
}
