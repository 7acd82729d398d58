package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;

/**
 * Contributions whose sums over nodes travel with the calls, from leader to leader, along a {@link
 * SumTree}. Each rank writes its own to its {@link GatheredCalls#part}.
 */
public interface LeaderSums extends Rendezvous.Payload {
  /** On a leader: adds the contributions of this node. All have been written. */
  void begin(int slot);

  /** Writes the sums to send in a round, each of the given size. Returns their number. */
  int give(int round, ByteBuffer out, int at, int size);

  /** Takes the sums that have come in a round, of the same size. */
  void take(int round, ByteBuffer in, int at, int size);

  /** Writes the result to the {@link GatheredCalls#part} after those of the ranks. */
  void finish(int slot);
}
