package org.gradientsync.collective;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Message;

/**
 * The messages of one buffer's all-reduce, prepared once and run many times.
 *
 * <p>Each rank owns a shard. In the first half every rank sends its elements of a shard straight to
 * the shard's owner, who reduces all contributions in rank order; in the second half the owner
 * sends the result straight to every rank. In place, and every element crosses a link 2(n-1)/n
 * times in each direction, the least that an all-reduce can do. Shards are worked off in chunks, so
 * that reducing one chunk overlaps with moving the next.
 *
 * <p>The order of the contributions is the order of the ranks, not of arrival: that is what makes
 * the bits repeatable, and it is why this is not a ring.
 */
final class AllReducePlan implements AutoCloseable {
  /** Chunks whose contributions are held at a time: one being reduced, one arriving. */
  static final int DEPTH = 2;

  private final Group group;
  private final BackendDevice device;
  private final int chunks;
  private final Message[][] scatterSends;
  private final Message[][] scatterReceives;
  private final Message[][] gatherSends;
  private final Message[][] gatherReceives;
  private final DeviceBuffer[][] contributions;

  /**
   * Prepares.
   *
   * @param buffer what is reduced
   * @param shards how it is divided
   * @param scratch room for DEPTH chunks from each rank
   */
  AllReducePlan(
      Group group, BackendDevice device, DeviceBuffer buffer, Shards shards, DeviceBuffer scratch) {
    this.group = group;
    this.device = device;
    this.chunks = shards.chunks();
    int size = group.size();
    int rank = group.rank();
    scatterSends = new Message[chunks][size];
    scatterReceives = new Message[chunks][size];
    gatherSends = new Message[chunks][size];
    gatherReceives = new Message[chunks][size];
    contributions = new DeviceBuffer[chunks][];
    for (int chunk = 0; chunk < chunks; chunk++) {
      long ownFirst = shards.first(rank, chunk);
      int ownLength = (int) shards.length(rank, chunk);
      if (ownLength > 0) {
        contributions[chunk] = new DeviceBuffer[size];
        contributions[chunk][rank] = buffer.slice(ownFirst, ownLength);
      }
      for (int peer = 0; peer < size; peer++) {
        if (peer == rank) {
          continue;
        }
        if (ownLength > 0) {
          long slot = (long) (chunk % DEPTH * size + peer) * shards.chunk();
          contributions[chunk][peer] = scratch.slice(slot, ownLength);
          scatterReceives[chunk][peer] =
              Pieces.receiver(group, scratch, slot, ownLength, peer, Group.SCATTER);
          gatherSends[chunk][peer] =
              Pieces.sender(group, buffer, ownFirst, ownLength, peer, Group.GATHER);
        }
        long first = shards.first(peer, chunk);
        int length = (int) shards.length(peer, chunk);
        if (length > 0) {
          scatterSends[chunk][peer] =
              Pieces.sender(group, buffer, first, length, peer, Group.SCATTER);
          gatherReceives[chunk][peer] =
              Pieces.receiver(group, buffer, first, length, peer, Group.GATHER);
        }
      }
    }
  }

  /** Runs; the ranks have met. */
  void run(DeviceBuffer buffer, ReduceOp op) {
    device.await(buffer);
    for (int chunk = 0; chunk < chunks; chunk++) {
      start(scatterReceives[chunk]);
      start(scatterSends[chunk]);
      if (chunk > 0) {
        reduceAndReturn(chunk - 1, op);
      }
    }
    if (chunks > 0) {
      reduceAndReturn(chunks - 1, op);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      await(gatherReceives[chunk]);
      await(gatherSends[chunk]);
    }
  }

  private void reduceAndReturn(int chunk, ReduceOp op) {
    await(scatterReceives[chunk]);
    DeviceBuffer[] sources = contributions[chunk];
    if (sources != null) {
      device.reduce(sources, sources[group.rank()], op);
      device.await(sources[group.rank()]);
    }
    await(scatterSends[chunk]); // only now may their memory be overwritten by the results
    start(gatherReceives[chunk]);
    start(gatherSends[chunk]);
  }

  private static void start(Message[] messages) {
    for (Message message : messages) {
      if (message != null) {
        message.start();
      }
    }
  }

  private void await(Message[] messages) {
    for (int peer = 0; peer < messages.length; peer++) {
      if (messages[peer] != null) {
        group.await(messages[peer], peer);
      }
    }
  }

  @Override
  public void close() {
    for (Message[][] half :
        new Message[][][] {scatterSends, scatterReceives, gatherSends, gatherReceives}) {
      for (Message[] messages : half) {
        for (Message message : messages) {
          if (message != null) {
            message.close();
          }
        }
      }
    }
  }
}
