package org.gradientsync.internal.diagnosis;

import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.matching.Pairs;
import org.gradientsync.internal.matching.WaitPhase;
import org.gradientsync.internal.ranks.WaitClock;
import org.gradientsync.spi.Message;

/** One long wait of a rank for another one to come to a call. See {@link DeadlockDetector}. */
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
   * A wait.
   *
   * @param group in which the rank waits
   * @param message what it waits for
   * @param peer the rank of the group that has to come
   * @param phase to what
   * @param number which call: that of the collective, or the rounds of {@link Pairs}
   * @param clock how long it has lasted
   * @param id no other wait of this rank has it
   * @param lateNanos after which a circle of waits in several groups ends them
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

  /** Whether it goes on. */
  boolean isWaiting() {
    try {
      return !message.test();
    } catch (GradientSyncException e) {
      return false; // as the waiting thread will find by itself
    }
  }

  /** The job's number of the rank that is waited for. */
  int awaited() {
    return group.ranks().worldRank(peer);
  }
}
