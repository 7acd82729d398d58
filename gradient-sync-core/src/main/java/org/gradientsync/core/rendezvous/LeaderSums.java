package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;

/**
 * Contributions whose sums over nodes travel with the calls, from leader to leader, in {@link
 * SumRounds}. Each rank writes its own to its {@link GatheredCalls#part}.
 */
public interface LeaderSums extends Rendezvous.Payload {
  /** On a leader: adds the contributions of this node. All have been written. */
  void begin(int slot);

  /** Writes the sum to send in a round, of the given size. */
  void give(int round, ByteBuffer out, int at, int size);

  /** Takes the sum of the same size that has come from a source in a round. */
  void take(int round, int source, ByteBuffer in, int at, int size);

  /** Writes the result to the {@link GatheredCalls#part} after those of the ranks. */
  void finish(int slot);
}
