package org.gradientsync.core.diagnosis;

import org.gradientsync.GradientSyncException;
import org.gradientsync.core.matching.Pairs;
import org.gradientsync.core.matching.WaitPhase;
import org.gradientsync.core.ranks.WaitClock;
import org.gradientsync.spi.Message;

/** A long wait of a rank for another rank to reach a call. See {@link DeadlockDetector}. */
public final class PendingWait {
  final WatchedGroup group;
  final Message message;
  final int peer;
  final WaitPhase phase;
  final long number;
  final int tag;
  final long id;
  final WaitClock clock;
  final long lateNanos;
  long probedAt; // by the clock
  public Probe suspected; // or null
  long suspectedAt;
  public boolean warned;

  /**
   * @param group the group in which the rank waits
   * @param message the message that ends the wait
   * @param peer the rank of the group that must arrive
   * @param phase the event that the rank waits for
   * @param number the call: the number of the collective, or the rounds of {@link Pairs}
   * @param clock the duration of the wait
   * @param id unique among the waits of this rank
   * @param lateNanos the time after which a cycle of waits in several groups ends them
   */
  public PendingWait(
      WatchedGroup group,
      Message message,
      int peer,
      WaitPhase phase,
      long number,
      WaitClock clock,
      long id,
      long lateNanos) {
    this.group = group;
    this.message = message;
    this.peer = peer;
    this.phase = phase;
    this.number = number;
    this.tag = group.arrivals().pairs().tag();
    this.id = id;
    this.clock = clock;
    this.lateNanos = lateNanos;
  }

  boolean isWaiting() {
    try {
      return !message.test();
    } catch (GradientSyncException e) {
      return false; // the waiting thread will see the same exception
    }
  }

  /** The world rank that is waited for. */
  int awaited() {
    return group.ranks().worldRank(peer);
  }
}
