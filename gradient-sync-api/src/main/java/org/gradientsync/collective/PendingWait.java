package org.gradientsync.collective;

import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Message;

/** One long wait of a rank for another one to come to a call. See {@link DeadlockDetector}. */
final class PendingWait {
  /** What a rank waits for. */
  enum Phase {
    /** That another rank comes to a collective. */
    MEETING,
    /** That a receiver comes. */
    SEND,
    /** That a sender comes. */
    RECEIVE,
    /** What a rank that has come does by itself. */
    DATA
  }

  final ProcessGroup group;
  final Message message;
  final int peer;
  final Phase phase;
  final long number;
  final int tag;
  final long id;
  final WaitClock clock;
  long probedAt; // by the clock
  Probe suspected; // or null
  long suspectedAt;
  boolean warned;

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
   */
  PendingWait(
      ProcessGroup group,
      Message message,
      int peer,
      Phase phase,
      long number,
      WaitClock clock,
      long id) {
    this.group = group;
    this.message = message;
    this.peer = peer;
    this.phase = phase;
    this.number = number;
    this.tag = group.matcher().pairs().tag();
    this.id = id;
    this.clock = clock;
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
    return group.members().worldRank(peer);
  }
}
