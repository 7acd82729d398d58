package org.gradientsync.internal.collectives;

import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.InlinePayload;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.spi.AbstractDeviceBuffer;
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
 * <p>Where the ranks meet by messages, contributions of small buffers come with those ({@link
 * InlinePayload}). Each rank decides that for itself: one that makes its plan in this call cannot
 * yet.
 *
 * <p>The order of the contributions is the order of the ranks, not of arrival: that is what makes
 * the bits repeatable, and it is why this is not a ring.
 */
final class AllReducePlan implements AutoCloseable {
  /** Chunks whose contributions are held at a time: one being reduced, one arriving. */
  static final int DEPTH = 2;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final int chunks;
  private final Message[][] scatterSends;
  private final Message[][] scatterReceives;
  private final Message[][] gatherSends;
  private final Message[][] gatherReceives;
  private final DeviceBuffer[][] contributions;
  private final Shards shards;
  private final boolean carries; // small enough to travel with the call
  private InlinePayload payload; // or null
  private boolean loaded; // once, so that a payload has been made, if there can be one
  private final DeviceBuffer[] inlineContributions; // by other ranks with their calls, or null
  private final DeviceBuffer[] sources;

  /**
   * Prepares.
   *
   * @param buffer what is reduced
   * @param shards how it is divided
   * @param scratch room for DEPTH chunks from each rank, or as many as there are if those are fewer
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
    int rank = group.rank();
    scatterSends = new Message[chunks][size];
    scatterReceives = new Message[chunks][size];
    gatherSends = new Message[chunks][size];
    gatherReceives = new Message[chunks][size];
    contributions = new DeviceBuffer[chunks][];
    sources = new DeviceBuffer[size];
    for (int chunk = 0; chunk < chunks; chunk++) {
      long ownLength = shards.length(rank, chunk);
      ByteBuffer ownView = null;
      if (ownLength > 0) {
        contributions[chunk] = new DeviceBuffer[size];
        contributions[chunk][rank] = buffer.slice(shards.first(rank, chunk), ownLength);
        ownView = RunMessages.view(contributions[chunk][rank]);
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
              RunMessages.message(
                  group.messages(), room, RunMessages.view(room), peer, Channel.SCATTER, false);
          gatherSends[chunk][peer] =
              RunMessages.message(
                  group.messages(),
                  contributions[chunk][rank],
                  ownView,
                  peer,
                  Channel.GATHER,
                  true);
        }
        long length = shards.length(peer, chunk);
        if (length > 0) {
          DeviceBuffer piece = buffer.slice(shards.first(peer, chunk), length);
          ByteBuffer view = RunMessages.view(piece);
          scatterSends[chunk][peer] =
              RunMessages.message(group.messages(), piece, view, peer, Channel.SCATTER, true);
          gatherReceives[chunk][peer] =
              RunMessages.message(group.messages(), piece, view, peer, Channel.GATHER, false);
        }
      }
    }
    this.shards = shards;
    carries = device instanceof HostDevice && fitsIntoCalls(buffer);
    inlineContributions = new DeviceBuffer[size];
  }

  /**
   * Takes this rank's contributions, if they can travel with its call. What that needs is made here
   * and not before: many a buffer is reduced only once.
   *
   * @return what to give to the rendezvous, or null
   */
  InlinePayload load(DeviceBuffer buffer) {
    if (carries && !loaded) {
      loaded = true;
      payload = payloadOf(buffer);
    }
    if (payload != null) {
      device.await(buffer);
      payload.load();
    }
    return payload;
  }

  /** Whether the contributions can travel with the calls; the same on all ranks. */
  private boolean fitsIntoCalls(DeviceBuffer buffer) {
    long longest = shards.length(0, 0) * buffer.type().sizeInBytes();
    return chunks == 1 && longest <= group.arrivals().payloadBytes();
  }

  /** Null if the elements do not lie in one piece. */
  private InlinePayload payloadOf(DeviceBuffer buffer) {
    ByteBuffer[] elements = new ByteBuffer[group.size()];
    for (int peer = 0; peer < elements.length; peer++) {
      int length = (int) shards.length(peer, 0);
      if (peer != group.rank() && length > 0) {
        elements[peer] = ((AbstractDeviceBuffer) buffer).nativeView(shards.first(peer, 0), length);
        if (elements[peer] == null) {
          return null;
        }
      }
    }
    return InlinePayload.of(group.messages(), elements);
  }

  /**
   * Runs; the ranks have met.
   *
   * @param sentInline whether this rank's contributions have gone with its call
   */
  void run(DeviceBuffer buffer, ReduceOp op, boolean sentInline) {
    device.await(buffer);
    for (int chunk = 0; chunk < chunks; chunk++) {
      for (int peer = 0; peer < sources.length; peer++) {
        if (isAwaited(chunk, peer)) {
          scatterReceives[chunk][peer].start();
        }
      }
      if (!sentInline) {
        start(scatterSends[chunk]);
      }
      if (chunk > 0) {
        reduceAndReturn(chunk - 1, op, sentInline);
      }
    }
    if (chunks > 0) {
      reduceAndReturn(chunks - 1, op, sentInline);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      await(gatherReceives[chunk]);
      await(gatherSends[chunk]);
    }
  }

  private boolean hasInlinePayload(int peer) {
    return carries && group.arrivals().hasInlinePayload(peer);
  }

  private boolean isAwaited(int chunk, int peer) {
    return scatterReceives[chunk][peer] != null && !hasInlinePayload(peer);
  }

  private void reduceAndReturn(int chunk, ReduceOp op, boolean sentInline) {
    int rank = group.rank();
    for (int peer = 0; peer < sources.length; peer++) {
      if (isAwaited(chunk, peer)) {
        group.await(scatterReceives[chunk][peer], peer);
      }
    }
    if (contributions[chunk] != null) {
      for (int peer = 0; peer < sources.length; peer++) {
        boolean inline = peer != rank && hasInlinePayload(peer);
        sources[peer] = inline ? inlinePayloadOf(peer) : contributions[chunk][peer];
      }
      device.reduce(sources, sources[rank], op);
      device.await(sources[rank]);
    }
    if (!sentInline) {
      await(scatterSends[chunk]); // only now may their memory be overwritten by the results
    }
    start(gatherReceives[chunk]);
    start(gatherSends[chunk]);
  }

  private DeviceBuffer inlinePayloadOf(int peer) {
    if (inlineContributions[peer] == null) {
      DeviceBuffer same = contributions[0][peer];
      ByteBuffer memory =
          group.arrivals().inlinePayloadOf(peer, (int) same.count() * same.type().sizeInBytes());
      inlineContributions[peer] = ((HostDevice) device).wrap(same.type(), memory);
    }
    return inlineContributions[peer];
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
    if (payload != null) {
      payload.close();
    }
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
    for (DeviceBuffer buffer : inlineContributions) {
      if (buffer != null) {
        buffer.close();
      }
    }
  }
}
