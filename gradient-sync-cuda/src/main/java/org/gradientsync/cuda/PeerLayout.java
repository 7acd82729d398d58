package org.gradientsync.cuda;

import org.gradientsync.DataType;

/**
 * What lies where in a mailbox, for a number of ranks; as in {@code peer.cuh}. Sizes are in bytes,
 * strides in vectors of 16 bytes.
 */
final class PeerLayout {
  /** As in peer.cuh. */
  static final int MAX_RANKS = 16;

  static final int MAX_BLOCKS = 512;
  static final int VECTOR = 16;

  /** What a warp handles at once: 28 vectors of data in 4 lines of 128 bytes. */
  static final int ROUND_VECTORS = 28;

  private static final int ROUND_BYTES = ROUND_VECTORS * VECTOR;
  private static final int ROUND_STRIDE = 32; // with the flags
  private static final int SLOTS = 4;
  private static final long WORKERS = 480;
  private static final long BATCH = 2;
  private static final long HEAD = 2 * 4096 + 2L * MAX_BLOCKS * MAX_RANKS * Long.BYTES;
  private static final long ONE_SHOT_BYTES = 8 << 20; // of data from all ranks together
  private static final long TWO_SHOT_BYTES = 8 << 20; // of a buffer
  private static final long STREAM_BYTES = 64 << 20; // of staging

  private final int ranks;
  private final long oneShotRounds;
  private final long twoShotRounds;

  PeerLayout(int ranks) {
    this.ranks = ranks;
    oneShotRounds = ONE_SHOT_BYTES / ranks / ROUND_BYTES;
    twoShotRounds = TWO_SHOT_BYTES / ranks / ROUND_BYTES + 1;
  }

  /** All of a mailbox. */
  long bytes() {
    return ranks == 1 ? HEAD : offset(PeerWay.STREAM) + STREAM_BYTES;
  }

  /** Where a way's staging begins. */
  long offset(PeerWay way) {
    long twoShot = HEAD + 2L * ranks * oneShotRounds * ROUND_STRIDE * VECTOR;
    return switch (way) {
      case ONE_SHOT, BROADCAST -> HEAD;
      case TWO_SHOT -> twoShot;
      case STREAM -> twoShot + 2L * ranks * twoShotRounds * ROUND_STRIDE * VECTOR;
    };
  }

  /** From one sender's staging to the next one's. */
  long stride(PeerWay way) {
    return switch (way) {
      case ONE_SHOT, BROADCAST -> oneShotRounds * ROUND_STRIDE;
      case TWO_SHOT -> twoShotRounds * ROUND_STRIDE;
      case STREAM -> STREAM_BYTES / VECTOR / SLOTS / ranks;
    };
  }

  /** The largest buffer that a way can take at once. */
  long mostBytes(PeerWay way) {
    return switch (way) {
      case ONE_SHOT, BROADCAST -> oneShotRounds * ROUND_BYTES;
      case TWO_SHOT -> TWO_SHOT_BYTES;
      case STREAM -> Long.MAX_VALUE;
    };
  }

  /** How many blocks have something to do, at most as many as given. */
  int blocks(PeerWay way, DataType type, long count, int most) {
    long vectors = vectors(type, count);
    long shard = (vectors + ranks - 1) / ranks;
    long needed =
        switch (way) {
          case ONE_SHOT, BROADCAST -> linesBlocks(vectors, way.threads);
          case TWO_SHOT -> linesBlocks(shard, way.threads);
          case STREAM -> (shard + WORKERS * BATCH - 1) / (WORKERS * BATCH);
        };
    long room = way == PeerWay.STREAM ? stride(way) / (WORKERS * BATCH) : MAX_BLOCKS;
    return (int) Math.max(1, Math.min(Math.min(needed, room), Math.min(most, MAX_BLOCKS)));
  }

  private static long linesBlocks(long vectors, int threads) {
    long warps = (vectors + ROUND_VECTORS - 1) / ROUND_VECTORS;
    return (warps + threads / 32 - 1) / (threads / 32);
  }

  /**
   * How many batches each block of {@link PeerWay#STREAM} sends before it raises a flag: as many as
   * the staging allows, up to 4, because a flag waits for the link.
   */
  int batches(DataType type, long count, int blocks) {
    long batch = WORKERS * BATCH * blocks;
    long shard = (vectors(type, count) + ranks - 1) / ranks;
    long useful = (shard + batch - 1) / batch;
    return (int) Math.max(1, Math.min(Math.min(4, useful), stride(PeerWay.STREAM) / batch));
  }

  private static long vectors(DataType type, long count) {
    int size = VECTOR / type.sizeInBytes();
    return (count + size - 1) / size;
  }
}
