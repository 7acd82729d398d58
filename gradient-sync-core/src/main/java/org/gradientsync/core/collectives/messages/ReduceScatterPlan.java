package org.gradientsync.core.collectives.messages;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Resources;

/**
 * The messages of a reduce-scatter, prepared once and run many times: every rank sends its elements
 * of a shard directly to the shard's owner, which reduces all contributions in rank order. Shards
 * are processed in chunks, so that reducing one chunk overlaps with moving the next.
 *
 * <p>A reduction to one rank is the same, after which the owners send their results to the root.
 */
final class ReduceScatterPlan implements Plan {
  /** The number of chunks whose contributions are held: one is reduced while another arrives. */
  static final int DEPTH = 2;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final int chunks;
  private final DeviceBuffer in;
  private final Message[][] sends;
  private final Message[][] receives;
  private final DeviceBuffer[][] contributions;
  private final DeviceBuffer[] targets; // by chunk
  private final Message[][] results; // to the root, or from the owners; by chunk and rank

  /**
   * @param call whose root gets the whole result; each rank keeps its shard if there is none
   * @param scratch {@link #scratchCount} elements
   */
  ReduceScatterPlan(
      ProcessGroup group,
      BackendDevice device,
      CollectiveCall call,
      Shards shards,
      DeviceBuffer scratch) {
    this.group = group;
    this.device = device;
    in = call.in();
    chunks = shards.chunks();
    int size = group.size();
    sends = new Message[chunks][size];
    receives = new Message[chunks][size];
    results = new Message[chunks][size];
    contributions = new DeviceBuffer[chunks][];
    targets = new DeviceBuffer[chunks];
    try {
      for (int chunk = 0; chunk < chunks; chunk++) {
        prepare(chunk, call.out(), call.root(), shards, scratch);
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /** How many elements of scratch a plan needs. */
  static long scratchCount(Shards shards) {
    long slots = Math.min(DEPTH, shards.chunks());
    return slots * (shards.ranks() + 1) * shards.chunk(); // one more for a result
  }

  private void prepare(int chunk, DeviceBuffer out, int root, Shards shards, DeviceBuffer scratch) {
    int rank = group.rank();
    int size = group.size();
    long own = shards.length(rank, chunk);
    long slot = (long) (chunk % DEPTH) * (size + 1) * shards.chunk();
    if (own > 0) {
      long first = shards.first(rank, chunk);
      contributions[chunk] = new DeviceBuffer[size];
      contributions[chunk][rank] = in.slice(first, own);
      targets[chunk] =
          root == RankGroup.NO_RANK
              ? out.slice(first - shards.first(rank, 0), own)
              : rank == root
                  ? out.slice(first, own)
                  : scratch.slice(slot + size * shards.chunk(), own);
    }
    for (int peer = 0; peer < size; peer++) {
      if (peer == rank) {
        continue;
      }
      if (own > 0) {
        contributions[chunk][peer] = scratch.slice(slot + peer * shards.chunk(), own);
        receives[chunk][peer] = message(contributions[chunk][peer], peer, Channel.SCATTER, false);
      }
      long length = shards.length(peer, chunk);
      if (length > 0) {
        DeviceBuffer piece = in.slice(shards.first(peer, chunk), length);
        sends[chunk][peer] = message(piece, peer, Channel.SCATTER, true);
        if (rank == root) {
          DeviceBuffer result = out.slice(shards.first(peer, chunk), length);
          results[chunk][peer] = message(result, peer, Channel.GATHER, false);
        }
      }
      if (peer == root && own > 0) {
        results[chunk][peer] = message(targets[chunk], peer, Channel.GATHER, true);
      }
    }
  }

  private Message message(DeviceBuffer piece, int peer, int channel, boolean isSend) {
    return BufferMessages.message(
        group.messages(), piece, BufferMessages.view(piece), peer, channel, isSend);
  }

  @Override
  public void run(CollectiveCall call) {
    ReduceOp op = call.op();
    device.await(in);
    if (call.out() != null) {
      device.await(call.out());
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      BufferMessages.start(receives[chunk]);
      BufferMessages.start(sends[chunk]);
      if (chunk > 0) {
        reduce(chunk - 1, op);
      }
    }
    if (chunks > 0) {
      reduce(chunks - 1, op);
    }
    for (int chunk = Math.max(0, chunks - DEPTH); chunk < chunks; chunk++) {
      BufferMessages.await(group, results[chunk]);
    }
  }

  private void reduce(int chunk, ReduceOp op) {
    BufferMessages.await(group, receives[chunk]);
    BufferMessages.await(group, sends[chunk]); // the root's elements, before results overwrite them
    if (chunk >= DEPTH) {
      BufferMessages.await(group, results[chunk - DEPTH]); // which used this slot
    }
    if (contributions[chunk] != null) {
      device.reduce(contributions[chunk], targets[chunk], op);
      device.await(targets[chunk]);
    }
    BufferMessages.start(results[chunk]);
  }

  @Override
  public void close() {
    for (Message[][] all : new Message[][][] {sends, receives, results}) {
      for (Message[] messages : all) {
        Resources.closeAll(messages);
      }
    }
  }
}
