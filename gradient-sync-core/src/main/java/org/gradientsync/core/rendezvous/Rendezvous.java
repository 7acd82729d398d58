package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;

/** How the ranks of a group find out that the others have reached a call, and what they ask for. */
public interface Rendezvous extends AutoCloseable {
  int SLOTS = 2; // between which the calls alternate

  static int slot(long sequence) {
    return (int) (sequence & 1);
  }

  /** What travels with a rank's call. */
  interface Payload {
    int bytes();

    /** Writes it to this rank's memory for it in a slot. */
    void write(int slot);
  }

  /** Signals that this rank has reached the call with this number and {@link CallRecord}. */
  void arrive(long sequence, ByteBuffer record);

  /**
   * Waits until this rank has the records of all ranks in the current call, and owes the others
   * nothing. Throws if the call cannot be completed.
   */
  void awaitAll(MatchingGroup group);

  /** Finishes when another rank is known to have reached the current call. */
  Message arrival(int peer);

  /** A rank's {@link CallRecord}. Valid after {@link #awaitAll}, until the next call. */
  ByteBuffer call(int peer);

  /**
   * Whether all ranks' records are known to be equal, so that they need not be compared. Valid as
   * {@link #call}.
   */
  default boolean areAllSame() {
    return false;
  }

  /** Signals that this rank has given up: in its last call, which is void then, or after it. */
  void abandon(boolean inCall);

  /** Whether another rank is known to have given up. */
  boolean abandoned(int peer);

  @Override
  default void close() {}
}
