package org.gradientsync.core.group;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import org.gradientsync.core.diagnosis.DeadlockDetector;
import org.gradientsync.core.diagnosis.PendingWait;
import org.gradientsync.core.diagnosis.Probe;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.matching.Arrivals;
import org.gradientsync.core.matching.WaitPhase;
import org.gradientsync.core.ranks.Amounts;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.ranks.WaitClock;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How a rank waits for another one: until that rank has done its part, is known to be gone, or the
 * time-out has passed.
 */
public final class Wait {
  /** Polls before the processor is yielded: the length of a short wait. */
  private static final int SPINS = 2000;

  /**
   * The same on a node with more ranks than processors: the awaited rank may need this processor.
   */
  private static final int CROWDED_SPINS = 20;

  /** Polls of the message between checks of anything else. */
  private static final int YIELDS = 20;

  private static final long CHECK_NANOS = Duration.ofMillis(100).toNanos();

  /** Ranks on other nodes that have arrived in a late call have said so by then. */
  private static final long INDIRECT_NANOS = Duration.ofMillis(500).toNanos();

  private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();

  /** The awaited rank's own notice, or a word about a cycle of waits, may still come. */
  private static final long OTHER_GRACE_NANOS = Duration.ofSeconds(2).toNanos();

  private static final long SPIN_NANOS = Duration.ofMillis(50).toNanos();
  private static final long PARK_NANOS = 100_000;

  /** When a wait is long. Multiplied by the number of ranks per processor, up to the maximum. */
  private static final long LONG_NANOS = Duration.ofMillis(100).toNanos();

  private static final long MAX_LONG_NANOS = Duration.ofSeconds(2).toNanos();
  private static final long LOOK_NANOS = Duration.ofMillis(10).toNanos();
  private static final Logger log = LoggerFactory.getLogger(Wait.class);

  private final WatchedGroup group;
  private final RankMap ranks;
  private final Arrivals arrivals;
  private final Liveness liveness;
  private final DepartureNotices departures;
  private final GroupState state;
  private final DeadlockDetector deadlockDetector;
  private final int spins;
  private final long longNanos;
  private final WaitClock clock = new WaitClock();
  private final IntPredicate missing; // in the current rendezvous
  private final IntPredicate nobody = peer -> false;
  private final List<Runnable> checks = new CopyOnWriteArrayList<>();
  private volatile Timeouts timeouts;
  private volatile int waitsFor = -1;
  private volatile long waitsSince;
  private PendingWait pending; // once the wait has become long; otherwise null
  private boolean detectorFailed; // the detector has failed in this wait

  /**
   * @param ranksOnNode the number of ranks of the job on this rank's node
   */
  Wait(
      WatchedGroup group,
      DepartureNotices departures,
      GroupState state,
      DeadlockDetector deadlockDetector,
      int ranksOnNode,
      Timeouts timeouts) {
    this.group = group;
    this.ranks = group.ranks();
    this.arrivals = group.arrivals();
    this.missing = peer -> !arrivals.hasArrived(peer);
    this.liveness = group.liveness();
    this.departures = departures;
    this.state = state;
    this.deadlockDetector = deadlockDetector;
    this.timeouts = timeouts;
    int processors = Runtime.getRuntime().availableProcessors();
    spins = ranksOnNode > processors ? CROWDED_SPINS : SPINS;
    longNanos = Math.min(MAX_LONG_NANOS, LONG_NANOS * Math.max(1, ranksOnNode / processors));
  }

  void addCheck(Runnable check) {
    checks.add(check);
  }

  void removeCheck(Runnable check) {
    checks.remove(check);
  }

  Timeouts timeouts() {
    return timeouts;
  }

  void setTimeouts(Timeouts newTimeouts) {
    timeouts = newTimeouts;
  }

  /** Waits for a message with which a rank that has arrived does its part. */
  void await(Message message, int peer) {
    await(message, peer, WaitPhase.DATA, 0);
  }

  /**
   * Waits for a started message.
   *
   * @param phase what the rank at its other end must do
   * @param number see {@link PendingWait}
   */
  void await(Message message, int peer, WaitPhase phase, long number) {
    // Most waits are short and must cost nothing, so the clock is read only when one gets long.
    for (int spin = 0; spin < spins; spin++) {
      if (state.test(message, peer)) {
        return;
      }
      Thread.onSpinWait();
    }
    waitsSince = System.nanoTime();
    clock.restart();
    waitsFor = peer;
    try {
      awaitLong(message, peer, phase, number);
    } finally {
      waitsFor = -1;
      detectorFailed = false;
      if (pending != null) {
        deadlockDetector.leave(pending);
        pending = null;
      }
    }
  }

  private void awaitLong(Message message, int peer, WaitPhase phase, long number) {
    boolean warned = false;
    boolean left = false;
    long leftAt = 0;
    int otherGone = RankMap.NO_RANK;
    long otherGoneAt = 0;
    long checked = 0;
    long looked = 0;
    while (true) {
      long began = clock.waited();
      long waited = began;
      // Where many threads share a processor, a single yield can take longer than LOOK_NANOS.
      for (int spin = 0; spin < YIELDS && waited - began < LOOK_NANOS; spin++) {
        if (state.test(message, peer)) {
          return;
        }
        Thread.yield();
        waited = clock.look();
      }
      if (Thread.currentThread().isInterrupted() && !state.test(message, peer)) {
        throw state.lost("interrupted while waiting for " + ranks.name(peer), null);
      }
      state.requireNotEnding();
      if (!left && (arrivals.isAbandoned(peer) || departures.hasLeftOrFailed(peer))) {
        left = true;
        leftAt = waited;
      }
      if (otherGone == RankMap.NO_RANK) {
        otherGone = otherGone(phase);
        otherGoneAt = waited;
      }
      boolean over = left && waited - leftAt > GRACE_NANOS;
      over |= otherGone != RankMap.NO_RANK && waited - otherGoneAt > OTHER_GRACE_NANOS;
      over = over && !state.test(message, peer);
      if (phase != WaitPhase.DATA
          && !detectorFailed
          && (over || waited - looked > LOOK_NANOS && (left || waited > longNanos))) {
        looked = waited;
        look(message, peer, phase, number);
      }
      if (over) {
        throw state.lost(left ? peer : otherGone, null);
      }
      if (waited - checked > CHECK_NANOS) {
        checked = waited;
        for (Runnable check : checks) {
          check.run();
        }
        int dead = deadWhileWaitingFor(peer, waited);
        if (dead != RankMap.NO_RANK && !state.test(message, peer)) {
          throw state.lost(
              ranks.name(dead)
                  + " has died, lastFinished="
                  + group.calls().log().lastFinished()
                  + ", waited="
                  + Amounts.time(waited),
              null);
        }
      }
      if (waited > timeouts.timeoutNanos() && !state.test(message, peer)) {
        throw state.timedOut(
            arrivals.describeLate(peer, state::test)
                + ", waited="
                + Amounts.time(timeouts.timeout()));
      }
      if (!warned && waited > timeouts.lateNanos()) {
        warned = true;
        log.warn(
            "rank {} has waited {} for {}, lastFinished={}, {}",
            group.rank(),
            Amounts.time(timeouts.late()),
            arrivals.describeAwaited(peer, state::test),
            group.calls().log().lastFinished(),
            state.during());
      }
      if (waited > SPIN_NANOS) {
        LockSupport.parkNanos(PARK_NANOS);
      }
    }
  }

  private int otherGone(WaitPhase phase) {
    boolean meets = phase == WaitPhase.RENDEZVOUS && !arrivals.isPair();
    return departures.otherGone(meets ? missing : nobody);
  }

  /**
   * The rank known to have died without a notice: the one that this rank waits for; or, if that is
   * on another node, which cannot see deaths here, one that it may be waiting for itself.
   *
   * @return {@link RankMap#NO_RANK} if there is none
   */
  private int deadWhileWaitingFor(int peer, long waited) {
    if (!liveness.isAlive(peer)) {
      return peer;
    }
    return ranks.isNear(peer) || arrivals.isPair() || waited < INDIRECT_NANOS
        ? RankMap.NO_RANK
        : liveness.diedSilently();
  }

  /** Breaks the group if this wait is part of a cycle of waits, or depends on one. */
  private void look(Message message, int peer, WaitPhase phase, long number) {
    Probe cycle;
    try {
      if (pending == null) {
        pending =
            new PendingWait(
                group,
                message,
                peer,
                phase,
                number,
                clock,
                deadlockDetector.newId(),
                timeouts.lateNanos());
      }
      cycle = deadlockDetector.look(pending);
    } catch (RuntimeException | OutOfMemoryError e) {
      detectorFailed = true; // keep waiting
      log.debug("rank {} cannot look who waits for whom", group.rank(), e);
      return;
    }
    if (cycle != null) {
      throw state.mismatched("the ranks wait for each other, " + describe(cycle));
    }
    if (pending.suspected != null && !pending.warned) {
      pending.warned = true;
      log.warn(
          "the ranks wait for each other, {}\n"
              + "  unless another thread makes one of these calls, they all end in {}",
          describe(pending.suspected),
          Amounts.time(timeouts.late()));
    }
  }

  /** Who waits for whom. */
  private String describe(Probe cycle) {
    return "rank=" + ranks.rank() + ", " + state.during() + ":" + cycle.table(ranks::nameInJob);
  }

  /** The rank that this one waits for, or an empty text. Any thread may call this. */
  String state() {
    int peer = waitsFor;
    return peer < 0
        ? ""
        : String.format(
            Locale.ROOT,
            "waits for rank %d since %.1f s in %s",
            peer,
            (System.nanoTime() - waitsSince) / 1e9,
            group.calls().log().current());
  }
}
