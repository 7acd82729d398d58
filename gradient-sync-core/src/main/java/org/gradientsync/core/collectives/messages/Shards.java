package org.gradientsync.core.collectives.messages;

/**
 * How the elements of a buffer are divided among ranks: each rank owns one contiguous shard, and
 * each shard is processed in chunks. This depends only on its arguments, so all ranks compute the
 * same.
 *
 * @param count the number of elements
 * @param ranks the number of shards
 * @param chunk the maximum number of elements in a chunk
 */
public record Shards(long count, int ranks, long chunk) {
  /** The chunk size of shards that are not divided. */
  public static final long WHOLE = Long.MAX_VALUE >>> 2;

  private long perShard() {
    return (count + ranks - 1) / ranks;
  }

  /** The number of chunks of the longest shard. All shards have as many; some may be empty. */
  public int chunks() {
    return Math.toIntExact((perShard() + chunk - 1) / chunk);
  }

  /** The number of chunks of a rank's shard that are not empty; 0 for a rank that owns none. */
  public int chunksOf(int rank) {
    int filled = 0;
    while (rank < ranks && filled < chunks() && length(rank, filled) > 0) {
      filled++;
    }
    return filled;
  }

  /** The first element of a chunk of a rank's shard. */
  public long first(int rank, int index) {
    long begin = Math.min(count, rank * perShard());
    return Math.min(begin + index * chunk, end(rank));
  }

  /** The number of elements in a chunk of a rank's shard; may be 0. */
  public long length(int rank, int index) {
    long first = first(rank, index);
    return Math.min(chunk, end(rank) - first);
  }

  private long end(int rank) {
    return Math.min(count, (rank + 1) * perShard());
  }
}
