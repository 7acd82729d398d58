package org.gradientsync.core.group;

import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.core.diagnosis.DeadlockDetector;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Timeouts;

/**
 * How a rank waits for another one: until that rank has done its part, or one of the {@link
 * Watchers} throws.
 */
public final class Wait {
  // Polls before the processor is yielded: the length of a short wait. Fewer if ranks share
  // processors, because the awaited rank may need this one.
  private static final int SPINS = 2000;
  private static final int CROWDED_SPINS = 20;
  private static final int YIELDS = 20; // polls of the message between looks at anything else

  private static final long SPIN_NANOS = Duration.ofMillis(50).toNanos();
  private static final long PARK_NANOS = 100_000;
  private static final long LOOK_NANOS = Duration.ofMillis(10).toNanos();

  private static final int NO_RANK = RankMap.NO_RANK;

  private final WatchedGroup group;
  private final GroupState state;
  private final int spins;
  private final LongWait longWait;
  private final Watchers watchers;
  private volatile Timeouts timeouts;
  private volatile int waitsFor = NO_RANK;
  private volatile long waitsSince;

  Wait(
      WatchedGroup group,
      GroupState state,
      DeadlockDetector detector,
      int ranksOnNode,
      Timeouts timeouts) {
    this.group = group;
    this.state = state;
    this.timeouts = timeouts;
    spins = ranksOnNode > Runtime.getRuntime().availableProcessors() ? CROWDED_SPINS : SPINS;
    longWait = new LongWait(group, detector);
    watchers = new Watchers(group, state, detector, ranksOnNode);
  }

  void addCheck(Runnable check) {
    watchers.checks.add(check);
  }

  void removeCheck(Runnable check) {
    watchers.checks.remove(check);
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

  /** As above, until the rank does something else; for the number see {@link LongWait#begin}. */
  void await(Message message, int peer, WaitPhase phase, long number) {
    // Most waits are short and must cost nothing, so the clock is read only when one gets long.
    for (int spin = 0; spin < spins; spin++) {
      if (state.test(message, peer)) {
        return;
      }
      Thread.onSpinWait();
    }
    waitsSince = System.nanoTime();
    waitsFor = peer;
    longWait.begin(message, peer, phase, number, timeouts);
    watchers.begin();
    try {
      awaitLong();
    } finally {
      waitsFor = NO_RANK;
      longWait.end();
    }
  }

  private void awaitLong() {
    while (true) {
      long began = longWait.waited();
      long waited = began;
      // Where many threads share a processor, a single yield can take longer than LOOK_NANOS.
      for (int spin = 0; spin < YIELDS && waited - began < LOOK_NANOS; spin++) {
        if (state.isOver(longWait)) {
          return;
        }
        Thread.yield();
        waited = longWait.look();
      }
      watchers.look(longWait);
      if (waited > SPIN_NANOS) {
        LockSupport.parkNanos(PARK_NANOS);
      }
    }
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
            group.calls().current());
  }
}
