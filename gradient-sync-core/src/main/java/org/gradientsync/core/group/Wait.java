package org.gradientsync.core.group;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.core.diagnosis.LongWait;
import org.gradientsync.core.rendezvous.Arrivals;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.core.rendezvous.Link;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Timeouts;

/**
 * How a rank waits for another one: until that rank has done its part, or one of the {@link
 * Watchers} throws.
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

  final Watchers watchers;
  private final Arrivals arrivals;
  private final Calls calls;
  private final GroupState state;
  private final LongWait current;
  private final int spins;
  volatile Timeouts timeouts;

  Wait(GroupParts group, GroupState state, LongWait current, int ranksOnNode, Timeouts timeouts) {
    arrivals = group.arrivals();
    calls = group.calls();
    this.state = state;
    this.current = current;
    this.timeouts = timeouts;
    spins = ranksOnNode > Runtime.getRuntime().availableProcessors() ? CROWDED_SPINS : SPINS;
    watchers = new Watchers(group, state, current, ranksOnNode);
  }

  /** Waits for a message with which a rank that has arrived does its part. */
  void await(Message message, int peer) {
    if (arrivals.isPair()) {
      Link link = arrivals.lastWith(peer);
      calls.show(link.own());
      WaitPhase phase = link.sends() ? WaitPhase.SEND_DATA : WaitPhase.RECEIVE_DATA;
      await(message, peer, phase, link.stages().getPlain());
    } else {
      await(message, peer, WaitPhase.DATA, 0);
    }
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
    watchers.begin();
    current.begin(message, peer, phase, number, timeouts);
    try {
      awaitLong(message, peer);
    } finally {
      current.end();
    }
  }

  private void awaitLong(Message message, int peer) {
    while (true) {
      long began = current.clock().waited();
      long waited = began;
      // Where many threads share a processor, a single yield can take longer than LOOK_NANOS.
      for (int spin = 0; spin < YIELDS && waited - began < LOOK_NANOS; spin++) {
        if (state.test(message, peer)) {
          return;
        }
        Thread.yield();
        waited = current.clock().look();
      }
      watchers.look(waited);
      if (waited > SPIN_NANOS) {
        LockSupport.parkNanos(PARK_NANOS);
      }
    }
  }
}
