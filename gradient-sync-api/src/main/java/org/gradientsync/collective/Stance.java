package org.gradientsync.collective;

import org.gradientsync.spi.Message;

/** One long wait of a rank: for whom, in which call, and what that rank would have to do. */
final class Stance {
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

  final Group group;
  final Message message;
  final int peer;
  final Phase phase;
  final long number;
  final long since;
  final long id;
  long probedAt;
  boolean warned;

  /**
   * A wait.
   *
   * @param group in which the rank waits
   * @param message what it waits for
   * @param peer the rank of the group that has to do something
   * @param phase what that is
   * @param number of the collective, or the tag of a message
   * @param since when it began, by {@link System#nanoTime}
   * @param id no other wait of this rank has it
   */
  Stance(Group group, Message message, int peer, Phase phase, long number, long since, long id) {
    this.group = group;
    this.message = message;
    this.peer = peer;
    this.phase = phase;
    this.number = number;
    this.since = since;
    this.id = id;
    this.probedAt = since;
  }

  /** Whether it ends only if another rank comes to a call. */
  boolean isForACall() {
    return phase != Phase.DATA && !group.test(message, peer);
  }

  /** The job's number of the rank that is waited for. */
  int awaited() {
    return group.worldRank(peer);
  }
}
