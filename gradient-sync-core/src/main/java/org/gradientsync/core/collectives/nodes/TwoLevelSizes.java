package org.gradientsync.core.collectives.nodes;

import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.rendezvous.LeaderRounds;

/**
 * Which buffers take which way in {@link TwoLevelReducer}, and in which parts. All ranks compute
 * the same.
 *
 * @param minBytes smaller buffers go by messages between all ranks
 * @param chunkBytes the maximum size of a chunk of a running sum
 * @param halvingBytes the maximum size of what a carrier adds by halving, for each node
 */
record TwoLevelSizes(int minBytes, int chunkBytes, int halvingBytes) {
  /** Up to this size, MPI sends a message without first waiting for the receiver to be ready. */
  static final int MAX_CHUNK_BYTES = 32 << 10;

  /** Those that take the least time by the model. */
  static final TwoLevelSizes USUAL = new TwoLevelSizes(16 << 10, MAX_CHUNK_BYTES, 32 << 10);

  private static final int MIN_CHUNK_BYTES = 4 << 10;
  private static final int MAX_SCRATCH_BYTES = 4 << 20;
  private static final int CHUNKS = 16; // enough to keep all nodes busy at the same time
  private static final int MIN_COLUMN_BYTES = 16 << 10;
  private static final int MAX_COLUMN_BYTES = 256 << 10;
  private static final long MOST_BY_HALVING = 4 << 20; // of a carrier; more is for the links alone

  /** The ways. */
  enum Way {
    /** With the calls, or by messages between all ranks. */
    MESSAGES,
    /** See {@link HalvingPlan}. */
    HALVING,
    /** See {@link RunningSumPlan}. */
    RUNNING_SUM
  }

  /**
   * The way of a buffer.
   *
   * @param element the size of an element
   * @param sum the size of an element's sum
   * @param shards the number of carriers of a node
   */
  Way way(SumOrder order, int nodes, long count, int element, int sum, int shards) {
    if (order == SumOrder.RANKS) {
      return count * element < minBytes ? Way.MESSAGES : Way.RUNNING_SUM;
    }
    if (count * sum <= Math.min(minBytes, LeaderRounds.mostSum())) {
      return Way.MESSAGES;
    }
    long most = Math.min((long) halvingBytes * nodes, MOST_BY_HALVING);
    return shard(count, shards) * sum <= most ? Way.HALVING : Way.RUNNING_SUM;
  }

  private static long shard(long count, int shards) {
    return (count - 1) / shards + 1;
  }

  /**
   * The shards of carriers, in the chunks of a running sum.
   *
   * @param sum the size of an element's sum
   */
  Shards chunks(SumOrder order, int nodes, long count, int sum, int shards) {
    long bytes = Long.highestOneBit(Math.max(1, shard(count, shards) * sum / CHUNKS));
    long chunk = Math.min(maxChunk(order, nodes), Math.max(MIN_CHUNK_BYTES, bytes));
    return new Shards(count, shards, chunk / sum);
  }

  /** The maximum size of a chunk's running sum: less on many nodes, whose carriers hold more. */
  long maxChunk(SumOrder order, int nodes) {
    long share = Long.highestOneBit(MAX_SCRATCH_BYTES / RunningSumPlan.slots(order, nodes));
    return Math.min(chunkBytes, Math.max(MIN_CHUNK_BYTES, share));
  }

  /**
   * The shards of carriers, in columns that are halved one beside the other.
   *
   * @param sum the size of an element's sum
   */
  Shards columns(long count, int sum, int shards) {
    long bytes = Long.highestOneBit(Math.max(1, shard(count, shards) * sum / Halving.SLOTS));
    long column = Math.max(Math.min(MIN_COLUMN_BYTES, chunkBytes), bytes);
    return new Shards(count, shards, Math.min(maxColumn(), column) / sum);
  }

  /** The maximum size of a column's sums. */
  long maxColumn() {
    return (long) chunkBytes * (MAX_COLUMN_BYTES / MAX_CHUNK_BYTES);
  }
}
