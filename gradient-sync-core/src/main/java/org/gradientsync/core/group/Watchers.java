package org.gradientsync.core.group;

import java.time.Duration;
import java.util.List;
import java.util.function.IntPredicate;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.diagnosis.DeadlockDetector;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.Probe;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.DepartureNotices;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a rank looks at while it waits for another one. */
final class Watchers {
  private static final long CHECK_NANOS = Duration.ofMillis(100).toNanos();
  private static final long LOOK_NANOS = Duration.ofMillis(10).toNanos();
  private static final int NO_RANK = RankMap.NO_RANK;
  private static final Logger log = LoggerFactory.getLogger(Wait.class);

  private Watchers() {}

  /** The watchers of a group, in the order in which they look. */
  static List<Watcher> of(
      WatchedGroup group,
      DepartureNotices departures,
      GroupState state,
      DeadlockDetector detector,
      long longNanos,
      List<Runnable> checks) {
    Watcher deadlock = new Deadlock(group, state, detector);
    return List.of(
        new Interrupt(group, state),
        wait -> state.requireNotEnding(),
        new Departed(group, state, departures, deadlock, longNanos),
        new Every(
            LOOK_NANOS,
            wait -> {
              if (wait.hasLeft() || wait.waited() > longNanos) {
                deadlock.look(wait);
              }
            }),
        new Every(CHECK_NANOS, wait -> checks.forEach(Runnable::run)),
        new Every(CHECK_NANOS, new Death(group, state)),
        new Deadline(group, state),
        new Late(group, state));
  }

  /** Lets another watcher look less often. */
  private static final class Every implements Watcher {
    private final long nanos;
    private final Watcher watcher;
    private long serial;
    private long looked;

    Every(long nanos, Watcher watcher) {
      this.nanos = nanos;
      this.watcher = watcher;
    }

    @Override
    public void look(LongWait wait) {
      looked = serial == wait.serial() ? looked : 0;
      serial = wait.serial();
      if (wait.waited() - looked > nanos) {
        looked = wait.waited();
        watcher.look(wait);
      }
    }
  }

  private record Interrupt(WatchedGroup group, GroupState state) implements Watcher {
    @Override
    public void look(LongWait wait) {
      if (Thread.currentThread().isInterrupted() && !state.isOver(wait)) {
        throw state.broken(
            "interrupted while waiting for " + group.ranks().name(wait.peer()), null);
      }
    }
  }

  /**
   * The awaited rank, or another one that the call needs, has left or given up. What it has done
   * before, its own notice, or a word about a cycle of waits may still come. If it had finished the
   * call, what it has sent is on its way, however slow that is.
   */
  private static final class Departed implements Watcher {
    private static final long GRACE_NANOS = Duration.ofMillis(200).toNanos();
    private static final long OTHER_GRACE_NANOS = Duration.ofSeconds(2).toNanos();
    private static final int LONG_WAITS = 5;

    private final GroupState state;
    private final Arrivals arrivals;
    private final DepartureNotices departures;
    private final Watcher deadlock;
    private final long otherGraceNanos;
    private final IntPredicate missing; // in the current rendezvous
    private final IntPredicate hasLeftOrFailed;
    private final IntPredicate hasFinished; // this rank's current collective
    private long serial;
    private int gone; // or NO_RANK
    private long since;

    Departed(
        WatchedGroup group,
        GroupState state,
        DepartureNotices departures,
        Watcher deadlock,
        long longNanos) {
      // Ranks that share a processor pass on late what others have done before they left.
      this.otherGraceNanos = Math.max(OTHER_GRACE_NANOS, LONG_WAITS * longNanos);
      this.state = state;
      this.arrivals = group.arrivals();
      Calls calls = group.calls();
      this.hasFinished = peer -> departures.hasFinished(peer, calls.met());
      this.departures = departures;
      this.deadlock = deadlock;
      this.hasLeftOrFailed = departures::hasLeftOrFailed;
      this.missing = peer -> !arrivals.hasArrived(peer);
    }

    @Override
    public void look(LongWait wait) {
      int before = serial == wait.serial() ? gone : NO_RANK;
      serial = wait.serial();
      if (!wait.hasLeft() && hasLeft(wait.peer())) {
        wait.setLeft();
      }
      boolean finished = wait.hasLeft() && isCollective(wait) && hasFinished.test(wait.peer());
      boolean left = wait.hasLeft() && !finished;
      gone = left ? wait.peer() : finished ? unfinished() : otherGone(wait.phase());
      since = gone == before ? since : wait.waited();
      long grace = left ? GRACE_NANOS : otherGraceNanos;
      if (gone != NO_RANK && wait.waited() - since > grace && !state.isOver(wait)) {
        deadlock.look(wait);
        throw state.lost(gone, null);
      }
    }

    private boolean hasLeft(int peer) {
      return arrivals.isAbandoned(peer) || state.ask(peer, hasLeftOrFailed);
    }

    private static boolean isCollective(LongWait wait) {
      return wait.phase() == WaitPhase.RENDEZVOUS || wait.phase() == WaitPhase.DATA;
    }

    /** A rank that has failed, or left in the middle: the awaited one may have waited for it. */
    private int unfinished() {
      return departures.otherGone(true, hasFinished.negate());
    }

    private int otherGone(WaitPhase phase) {
      boolean meets = phase == WaitPhase.RENDEZVOUS && !arrivals.isPair();
      return departures.otherGone(meets, missing);
    }
  }

  /** The wait is part of a cycle of waits, or depends on one. */
  private static final class Deadlock implements Watcher {
    private final WatchedGroup group;
    private final GroupState state;
    private final DeadlockDetector detector;
    private long failed; // the wait in which the detector has

    Deadlock(WatchedGroup group, GroupState state, DeadlockDetector detector) {
      this.group = group;
      this.state = state;
      this.detector = detector;
    }

    @Override
    public void look(LongWait wait) {
      if (wait.phase() == WaitPhase.DATA || failed == wait.serial()) {
        return;
      }
      Probe cycle;
      try {
        cycle = detector.look(wait);
      } catch (RuntimeException | OutOfMemoryError e) {
        failed = wait.serial(); // keep waiting
        log.debug("rank {} cannot look who waits for whom", group.rank(), e);
        return;
      }
      if (cycle != null) {
        throw state.mismatched("the ranks wait for each other, " + describe(cycle));
      }
      Probe suspicion = wait.suspicion();
      if (suspicion != null) {
        log.warn(
            "the ranks wait for each other, {}\n"
                + "  unless another thread makes one of these calls, they all end in {}",
            describe(suspicion),
            Amounts.time(wait.timeouts().late()));
      }
    }

    private String describe(Probe cycle) {
      String table = cycle.table(group.ranks()::nameInJob);
      return "rank=" + group.rank() + ", " + state.during() + ":" + table;
    }
  }

  /**
   * A rank has died without a notice: the one that this rank waits for; or, if that is on another
   * node, which cannot see deaths here, one that it may be waiting for itself.
   */
  private record Death(WatchedGroup group, GroupState state) implements Watcher {
    /** Ranks on other nodes that have arrived in a late call have said so by then. */
    private static final long INDIRECT_NANOS = Duration.ofMillis(500).toNanos();

    @Override
    public void look(LongWait wait) {
      int dead = deadWhileWaitingFor(wait.peer(), wait.waited());
      if (dead != NO_RANK && !state.isOver(wait)) {
        throw state.broken(
            "%s %s, lastFinished=%s, waited=%s"
                .formatted(
                    group.ranks().name(dead),
                    group.liveness().fate(dead),
                    group.calls().log().lastFinished(),
                    Amounts.time(wait.waited())),
            null);
      }
    }

    private int deadWhileWaitingFor(int peer, long waited) {
      if (!group.liveness().isAlive(peer)) {
        return peer;
      }
      return group.ranks().isNear(peer) || group.arrivals().isPair() || waited < INDIRECT_NANOS
          ? NO_RANK
          : group.liveness().diedSilently();
    }
  }

  private record Deadline(WatchedGroup group, GroupState state) implements Watcher {
    @Override
    public void look(LongWait wait) {
      if (wait.waited() > wait.timeouts().timeoutNanos() && !state.isOver(wait)) {
        String late = group.arrivals().describeLate(wait.peer(), state::test);
        throw state.timedOut(late + ", waited=" + Amounts.time(wait.timeouts().timeout()));
      }
    }
  }

  /** Warns of a rank that is late, once in a wait. */
  private static final class Late implements Watcher {
    private final WatchedGroup group;
    private final GroupState state;
    private long warned; // the last wait

    Late(WatchedGroup group, GroupState state) {
      this.group = group;
      this.state = state;
    }

    @Override
    public void look(LongWait wait) {
      if (warned != wait.serial() && wait.waited() > wait.timeouts().lateNanos()) {
        warned = wait.serial();
        log.warn(
            "rank {} has waited {} for {}, lastFinished={}, {}",
            group.rank(),
            Amounts.time(wait.timeouts().late()),
            group.arrivals().describeAwaited(wait.peer(), state::test),
            group.calls().log().lastFinished(),
            state.during());
      }
    }
  }
}
