package org.gradientsync.core.group;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.Condition;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.Probe;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How a rank waits for another one: until that rank has done its part, or until the wait must end
 * for another reason, which is thrown.
 */
final class Wait {
  // Polls before the processor is yielded: the length of a short wait. Fewer if ranks share
  // processors, because the awaited rank may need this one.
  private static final int SPINS = 2000;
  private static final int CROWDED_SPINS = 20;
  private static final int YIELDS = 20; // polls of the message between looks at anything else

  private static final long SPIN_NANOS = Duration.ofMillis(50).toNanos();
  private static final long PARK_NANOS = 100_000;
  private static final long LOOK_NANOS = Duration.ofMillis(10).toNanos();

  // When a wait is long. Multiplied by the number of ranks per processor, up to the maximum.
  private static final long LONG_NANOS = Duration.ofMillis(100).toNanos();
  private static final long MAX_LONG_NANOS = Duration.ofSeconds(2).toNanos();
  private static final long CHECK_NANOS = Duration.ofMillis(100).toNanos();
  private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();
  private static final long OTHER_GRACE_NANOS = Duration.ofSeconds(2).toNanos();
  private static final int LONG_WAITS = 5;

  // Ranks on other nodes that have arrived in a late call have said so by then.
  private static final long INDIRECT_NANOS = Duration.ofMillis(500).toNanos();
  private static final int NO_RANK = RankMap.NO_RANK;
  private static final Logger log = LoggerFactory.getLogger(Wait.class);

  private final WatchedGroup group;
  private final GroupState state;
  private final DepartureNotices departures;
  private final LongWait current;
  private final int spins;
  private final long longNanos;
  private final long otherGraceNanos;
  final List<Runnable> checks = new CopyOnWriteArrayList<>(); // which throw
  private final Condition hasLeft; // the awaited rank, or has given up
  private final IntPredicate hasNotFinished; // this rank's current collective
  private final IntPredicate missing; // in the current rendezvous
  volatile Timeouts timeouts;

  // Of the current wait; times are its duration then.
  private boolean left; // whether the awaited rank has
  private int gone; // the rank that ends the wait, or NO_RANK
  private long goneSince;
  private long searched; // for a deadlock
  private boolean canSearch;
  private long checked;
  private boolean warned;

  Wait(WatchedGroup group, GroupState state, LongWait current, int ranksOnNode, Timeouts timeouts) {
    this.group = group;
    this.state = state;
    this.current = current;
    this.timeouts = timeouts;
    int processors = Runtime.getRuntime().availableProcessors();
    spins = ranksOnNode > processors ? CROWDED_SPINS : SPINS;
    longNanos = Math.min(MAX_LONG_NANOS, LONG_NANOS * Math.max(1, ranksOnNode / processors));
    // Ranks that share a processor pass on late what others have done before they left.
    otherGraceNanos = Math.max(OTHER_GRACE_NANOS, LONG_WAITS * longNanos);
    departures = group.liveness().departures();
    hasLeft =
        () ->
            group.arrivals().rendezvous().abandoned(current.peer())
                || departures.hasLeftOrFailed(current.peer());
    hasNotFinished = peer -> !departures.hasFinished(peer, group.calls().met());
    missing = peer -> !group.arrivals().hasArrived(peer);
  }

  /** Waits for a message with which a rank that has arrived does its part. */
  void await(Message message, int peer) {
    await(message, peer, WaitPhase.DATA, 0);
  }

  /** As above, until the rank does something else; for the number see {@link LongWait#begin}. */
  void await(Message message, int peer, WaitPhase phase, long number) {
    // Most waits are short and must cost nothing, so the clock is read only when one gets long.
    for (int spin = 0; spin < spins; spin++) {
      if (state.test(message, peer)) {
        return;
      }
      Thread.onSpinWait();
    }
    left = false;
    gone = NO_RANK;
    searched = 0;
    canSearch = true;
    checked = 0;
    warned = false;
    current.begin(message, peer, phase, number, timeouts);
    try {
      awaitLong();
    } finally {
      current.end();
    }
  }

  private void awaitLong() {
    while (true) {
      long began = current.waited();
      long waited = began;
      // Where many threads share a processor, a single yield can take longer than LOOK_NANOS.
      for (int spin = 0; spin < YIELDS && waited - began < LOOK_NANOS; spin++) {
        if (isOver()) {
          return;
        }
        Thread.yield();
        waited = current.look();
      }
      look(waited);
      if (waited > SPIN_NANOS) {
        LockSupport.parkNanos(PARK_NANOS);
      }
    }
  }

  private boolean isOver() {
    return state.test(current.message(), current.peer());
  }

  private void look(long waited) {
    if (Thread.currentThread().isInterrupted() && !isOver()) {
      String name = group.ranks().name(current.peer());
      throw state.broken("interrupted while waiting for " + name, null);
    }
    state.requireNotEnding();
    lookForDeparted(waited);
    if (waited - searched > LOOK_NANOS && (left || waited > longNanos)) {
      searched = waited;
      lookForDeadlock();
    }
    if (waited - checked > CHECK_NANOS) {
      checked = waited;
      checks.forEach(Runnable::run);
      lookForDead(waited);
    }
    if (waited > timeouts.timeoutNanos() && !isOver()) {
      String late = group.arrivals().describeLate(current.peer(), state::test);
      throw state.timedOut(late + ", waited=" + Amounts.time(timeouts.timeout()));
    }
    if (!warned && waited > timeouts.lateNanos()) {
      warned = true;
      String late = group.arrivals().describeAwaited(current.peer(), state::test);
      String during = ", lastFinished=" + group.calls().lastFinished() + ", " + group.during();
      String time = Amounts.time(timeouts.late());
      log.warn("rank {} has waited {} for {}{}", group.rank(), time, late, during);
    }
  }

  /**
   * The awaited rank, or another one that the call needs, has left or given up. What it has done
   * before, its own notice, or a word about a cycle of waits may still come. If it had finished the
   * call, what it has sent is on its way, however slow that is.
   */
  private void lookForDeparted(long waited) {
    int peer = current.peer();
    left = left || state.test(hasLeft, peer);
    WaitPhase phase = current.phase();
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
    goneSince = gone == before ? goneSince : waited;
    long grace = left && !finished ? GRACE_NANOS : otherGraceNanos;
    if (gone != NO_RANK && waited - goneSince > grace && !isOver()) {
      lookForDeadlock();
      throw state.lost(gone, null);
    }
  }

  /** The wait is part of a cycle of waits, or depends on one. */
  private void lookForDeadlock() {
    if (current.phase() == WaitPhase.DATA || !canSearch) {
      return;
    }
    Probe cycle;
    try {
      cycle = current.findCycle();
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
    int dead = current.peer();
    if (group.liveness().isAlive(dead)) {
      boolean isDirect = group.ranks().isNear(dead) || group.arrivals().isPair();
      dead = isDirect || waited < INDIRECT_NANOS ? NO_RANK : group.liveness().diedSilently();
    }
    if (dead != NO_RANK && !isOver()) {
      String fate = group.ranks().name(dead) + " " + group.liveness().fate(dead);
      String finished = ", lastFinished=" + group.calls().lastFinished();
      throw state.broken(fate + finished + ", waited=" + Amounts.time(waited), null);
    }
  }
}
