package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;

/**
 * The layout of a mailbox for a number of ranks, as in {@code protocol.cuh}, {@code lines.cuh} and
 * {@code chunks.cuh}. Sizes and offsets are in bytes, strides in vectors of 16 bytes.
 */
final class PeerLayout {
  /** As in protocol.cuh. */
  static final int MAX_RANKS = 16;

  static final int MAX_BLOCKS = 512;
  static final int VECTOR = 16;

  /** A round is what a warp handles at once: 28 vectors of data in 4 lines of 128 bytes. */
  static final int ROUND_VECTORS = 28;

  /** The blocks that carry a message, and the chunks that each may have under way. */
  static final int MESSAGE_BLOCKS = 16;

  static final int MESSAGE_SLOTS = 4;

  private static final int ROUND_BYTES = ROUND_VECTORS * VECTOR;
  private static final int ROUND_STRIDE = 32; // with the flags
  private static final int SLOTS = 4;
  private static final long WORKERS = 480; // as in chunks.cuh
  private static final long HEAD = 2 * 4096 + 2L * MAX_BLOCKS * MAX_RANKS * Long.BYTES;
  private static final long ONE_SHOT_BYTES = 8 << 20; // the data of all ranks together
  private static final long TWO_SHOT_BYTES = 8 << 20; // one buffer
  private static final long STREAM_BYTES = 128 << 20; // the staging
  private static final long CACHED_BYTES = 48 << 20; // a little less than an H200's L2 cache

  private static final long MESSAGE_COUNTS = 4L * MESSAGE_BLOCKS * MAX_RANKS * Long.BYTES;
  private static final long MESSAGE_BYTES = 4 << 20; // the chunks of all senders

  private final int ranks;
  private final long oneShotRounds;
  private final long twoShotRounds;

  PeerLayout(int ranks) {
    this.ranks = ranks;
    oneShotRounds = ONE_SHOT_BYTES / ranks / ROUND_BYTES;
    twoShotRounds = TWO_SHOT_BYTES / ranks / ROUND_BYTES + 1;
  }

  /** The size of a mailbox. */
  long bytes() {
    return ranks == 1 ? HEAD : messageOffset() + MESSAGE_COUNTS + MESSAGE_BYTES;
  }

  /** The offset of the part for messages. */
  long messageOffset() {
    return offset(PeerAlgorithm.STREAM) + STREAM_BYTES;
  }

  /** The number of vectors of a message's chunk. */
  long messageChunk() {
    return MESSAGE_BYTES / VECTOR / MESSAGE_BLOCKS / MESSAGE_SLOTS / ranks;
  }

  /** The number of a message's blocks that have work. */
  int messageBlocks(long bytes) {
    long chunk = messageChunk() * VECTOR;
    return (int) Math.min(MESSAGE_BLOCKS, (bytes + chunk - 1) / chunk);
  }

  /**
   * The number of blocks to write into other ranks' memory, at most {@code most}.
   *
   * @param bytes the size of what a rank writes to another
   * @param threads the threads of a block
   */
  static int blocks(long bytes, int threads, int most) {
    long each = threads * 2L * VECTOR;
    return (int) Math.max(1, Math.min((bytes + each - 1) / each, Math.min(most, MAX_BLOCKS)));
  }

  /**
   * The parts of a broadcast in lines: one for each receiver, which forwards it, if the root would
   * take longer to send everything to all.
   */
  int broadcastParts(long bytes) {
    return (ranks - 2) * bytes > 512 << 10 ? ranks - 1 : 1;
  }

  /**
   * The size of what a block of a broadcast sends before it raises a flag, in units of 8 KiB: small
   * enough that receivers soon have something to forward.
   */
  static int broadcastTile(long bytes, int ranks, int blocks) {
    long part = bytes / (ranks - 1);
    return (int) Math.max(1, Math.min(2, part / blocks / 8192 / 12));
  }

  /** The offset of an algorithm's staging in the mailbox. */
  long offset(PeerAlgorithm algorithm) {
    long twoShot = HEAD + 2L * ranks * oneShotRounds * ROUND_STRIDE * VECTOR;
    return switch (algorithm) {
      case ONE_SHOT, BROADCAST -> HEAD;
      case TWO_SHOT, TWO_SHOT_UNROLLED -> twoShot;
      case STREAM, STREAM_FEW_CTAS, STAGED ->
          twoShot + 2L * ranks * twoShotRounds * ROUND_STRIDE * VECTOR;
    };
  }

  /** The distance from one sender's staging to the next sender's. */
  long stride(PeerAlgorithm algorithm) {
    return switch (algorithm) {
      case ONE_SHOT, BROADCAST -> oneShotRounds * ROUND_STRIDE;
      case TWO_SHOT, TWO_SHOT_UNROLLED -> twoShotRounds * ROUND_STRIDE;
      case STREAM, STREAM_FEW_CTAS -> STREAM_BYTES / VECTOR / SLOTS / Math.max(1, ranks - 1);
      case STAGED -> stride(PeerAlgorithm.STREAM) / 2; // the other half is for results
    };
  }

  /** The size of the largest buffer that an algorithm takes in one launch. */
  long mostBytes(PeerAlgorithm algorithm) {
    return switch (algorithm) {
      case ONE_SHOT -> oneShotRounds * ROUND_BYTES;
      case BROADCAST -> Math.max(1, ranks - 1) * oneShotRounds * ROUND_BYTES;
      case TWO_SHOT, TWO_SHOT_UNROLLED -> TWO_SHOT_BYTES;
      case STREAM, STREAM_FEW_CTAS, STAGED -> Long.MAX_VALUE;
    };
  }

  /** The number of blocks that have work, at most {@code most}. */
  int blocks(PeerAlgorithm algorithm, DataType type, long count, int most) {
    boolean all = algorithm == PeerAlgorithm.ONE_SHOT || algorithm == PeerAlgorithm.BROADCAST;
    long vectors = all ? vectors(type, count) : shard(type, count);
    long each =
        algorithm.isChunked()
            ? WORKERS * algorithm.batch(type)
            : algorithm.threads / 32 * ROUND_VECTORS;
    long needed = (vectors + each - 1) / each;
    long room = algorithm.isChunked() ? stride(algorithm) / each : MAX_BLOCKS;
    return (int) Math.max(1, Math.min(Math.min(needed, room), Math.min(most, MAX_BLOCKS)));
  }

  /**
   * The number of batches that each block of a {@linkplain PeerAlgorithm#isChunked chunked}
   * algorithm sends before it raises a flag: all of them if they fit into the staging. Chunks of a
   * larger buffer must be small enough that the staged data stays in the GPU's cache.
   */
  int batches(PeerAlgorithm algorithm, DataType type, long count, int blocks) {
    if (!algorithm.isChunked()) {
      return 1;
    }
    long batch = WORKERS * algorithm.batch(type) * blocks;
    long needed = (shard(type, count) + batch - 1) / batch;
    long room = stride(algorithm) / batch;
    if (needed <= room) {
      return (int) Math.max(1, needed);
    }
    int slots = algorithm == PeerAlgorithm.STAGED ? 2 * SLOTS : SLOTS;
    long cached = CACHED_BYTES / VECTOR / slots / Math.max(1, ranks - 1) / batch;
    return (int) Math.max(1, Math.min(room, cached));
  }

  /**
   * As {@link #batches}, where each owner has a block of {@code count} elements. Larger ones go in
   * chunks of two batches, so that owners add while more elements are on their way. Measured on two
   * H200: one chunk is the fastest of up to five batches, and two batches of more.
   */
  int batchesOfBlocks(PeerAlgorithm algorithm, DataType type, long count, int blocks) {
    int most = batches(algorithm, type, count * ranks, blocks);
    long all = vectors(type, count) / (WORKERS * algorithm.batch(type) * blocks);
    return all < 6 ? most : Math.min(2, most);
  }

  /**
   * The elements of a batch of {@link PeerAlgorithm#STREAM}. Each of several parts begins with one.
   */
  static long batchElements(DataType type) {
    return WORKERS * PeerAlgorithm.STREAM.batch(type) * (VECTOR / type.sizeInBytes());
  }

  private long shard(DataType type, long count) {
    return (vectors(type, count) + ranks - 1) / ranks;
  }

  private static long vectors(DataType type, long count) {
    int size = VECTOR / type.sizeInBytes();
    return (count + size - 1) / size;
  }
}
