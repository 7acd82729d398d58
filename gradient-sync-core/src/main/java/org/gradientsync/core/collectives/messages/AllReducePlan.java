package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * The messages of one buffer's all-reduce, prepared once and run many times.
 *
 * <p>Each rank owns a shard. In the first half, every rank sends its elements of a shard directly
 * to the shard's owner, which reduces all contributions in rank order. In the second half, the
 * owner sends the result directly to every rank. The all-reduce is in place, and every element
 * crosses a link 2(n-1)/n times in each direction, the minimum for an all-reduce. Shards are
 * processed in chunks, so that reducing one chunk overlaps with moving the next.
 *
 * <p>Contributions are added in rank order, not in order of arrival. That makes the bits
 * repeatable, and it is why this is not a ring.
 */
public final class AllReducePlan implements Plan {
  /** The number of chunks whose contributions are held: one is reduced while another arrives. */
  static final int DEPTH = 2;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final int chunks;
  private final Message[][] scatterSends;
  private final Message[][] scatterReceives;
  private final Message[][] gatherSends;
  private final Message[][] gatherReceives;
  private final DeviceBuffer[][] contributions;

  /**
   * @param scratch room for DEPTH chunks from each rank, or for all chunks if there are fewer
   */
  AllReducePlan(
      ProcessGroup group,
      BackendDevice device,
      DeviceBuffer buffer,
      Shards shards,
      DeviceBuffer scratch) {
    this.group = group;
    this.device = device;
    this.chunks = shards.chunks();
    int size = group.size();
    scatterSends = new Message[chunks][size];
    scatterReceives = new Message[chunks][size];
    gatherSends = new Message[chunks][size];
    gatherReceives = new Message[chunks][size];
    contributions = new DeviceBuffer[chunks][];
    try {
      for (int chunk = 0; chunk < chunks; chunk++) {
        prepare(chunk, buffer, shards, scratch);
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private void prepare(int chunk, DeviceBuffer buffer, Shards shards, DeviceBuffer scratch) {
    int size = group.size();
    int rank = group.rank();
    long ownLength = shards.length(rank, chunk);
    ByteBuffer ownView = null;
    if (ownLength > 0) {
      contributions[chunk] = new DeviceBuffer[size];
      contributions[chunk][rank] = buffer.slice(shards.first(rank, chunk), ownLength);
      ownView = BufferMessages.view(contributions[chunk][rank]);
    }
    for (int peer = 0; peer < size; peer++) {
      if (peer == rank) {
        continue;
      }
      if (ownLength > 0) {
        long slot = (long) (chunk % DEPTH * size + peer) * shards.chunk();
        DeviceBuffer room = scratch.slice(slot, ownLength);
        contributions[chunk][peer] = room;
        scatterReceives[chunk][peer] =
            BufferMessages.message(
                group.messages(), room, BufferMessages.view(room), peer, Channel.SCATTER, false);
        gatherSends[chunk][peer] =
            BufferMessages.message(
                group.messages(), contributions[chunk][rank], ownView, peer, Channel.GATHER, true);
      }
      long length = shards.length(peer, chunk);
      if (length > 0) {
        DeviceBuffer piece = buffer.slice(shards.first(peer, chunk), length);
        ByteBuffer view = BufferMessages.view(piece);
        scatterSends[chunk][peer] =
            BufferMessages.message(group.messages(), piece, view, peer, Channel.SCATTER, true);
        gatherReceives[chunk][peer] =
            BufferMessages.message(group.messages(), piece, view, peer, Channel.GATHER, false);
      }
    }
  }

  @Override
  public void run(CollectiveCall call) {
    device.await(call.in());
    for (int chunk = 0; chunk < chunks; chunk++) {
      BufferMessages.start(scatterReceives[chunk]);
      BufferMessages.start(scatterSends[chunk]);
      if (chunk > 0) {
        reduceAndReturn(chunk - 1, call.op());
      }
    }
    if (chunks > 0) {
      reduceAndReturn(chunks - 1, call.op());
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      BufferMessages.await(group, gatherReceives[chunk]);
      BufferMessages.await(group, gatherSends[chunk]);
    }
  }

  private void reduceAndReturn(int chunk, ReduceOp op) {
    BufferMessages.await(group, scatterReceives[chunk]);
    DeviceBuffer[] sources = contributions[chunk];
    if (sources != null) {
      device.reduce(sources, sources[group.rank()], op);
      device.await(sources[group.rank()]);
    }
    BufferMessages.await(group, scatterSends[chunk]); // before the results overwrite their memory
    BufferMessages.start(gatherReceives[chunk]);
    BufferMessages.start(gatherSends[chunk]);
  }

  @Override
  public void close() {
    for (Message[][] half :
        new Message[][][] {scatterSends, scatterReceives, gatherSends, gatherReceives}) {
      for (Message[] messages : half) {
        Resources.closeAll(messages);
      }
    }
  }
}
