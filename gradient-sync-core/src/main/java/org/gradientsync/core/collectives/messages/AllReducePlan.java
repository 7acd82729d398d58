package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.rendezvous.InlinePayload;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;

/**
 * The messages of one buffer's all-reduce, prepared once and run many times.
 *
 * <p>Each rank owns a shard. In the first half, every rank sends its elements of a shard directly
 * to the shard's owner, which reduces all contributions in rank order. In the second half, the
 * owner sends the result directly to every rank. The all-reduce is in place, and every element
 * crosses a link 2(n-1)/n times in each direction, the minimum for an all-reduce. Shards are
 * processed in chunks, so that reducing one chunk overlaps with moving the next.
 *
 * <p>If the ranks meet by messages, contributions of small buffers travel with those ({@link
 * InlinePayload}). Each rank decides this by itself: a rank that makes its plan in this call cannot
 * do so yet.
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
  private final Shards shards;
  private final boolean carries; // whether contributions fit into a call
  private InlinePayload payload; // or null
  private boolean loaded; // whether load has tried to make the payload
  private boolean sentInline; // whether this rank's contributions were sent with the next call
  private final DeviceBuffer[] inlineContributions; // of the other ranks; each made at first use
  private final DeviceBuffer[] sources;

  /**
   * @param buffer the buffer to reduce
   * @param shards how it is divided
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
   * Copies this rank's contributions into an inline payload, if they fit. The payload is allocated
   * here and not with the plan, because many buffers are reduced only once.
   *
   * @return the payload for the rendezvous, or null
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
    sentInline = payload != null;
    return payload;
  }

  /** Whether the contributions fit into an inline payload; the same on all ranks. */
  private boolean fitsIntoCalls(DeviceBuffer buffer) {
    long longest = shards.length(0, 0) * buffer.type().sizeInBytes();
    return chunks == 1 && longest <= group.arrivals().payloadBytes();
  }

  /** Null if the elements are not contiguous. */
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

  @Override
  public void run(CollectiveCall call) {
    boolean inline = sentInline;
    sentInline = false;
    run(call.in(), call.op(), inline);
  }

  private void run(DeviceBuffer buffer, ReduceOp op, boolean inline) {
    device.await(buffer);
    for (int chunk = 0; chunk < chunks; chunk++) {
      for (int peer = 0; peer < sources.length; peer++) {
        if (isAwaited(chunk, peer)) {
          scatterReceives[chunk][peer].start();
        }
      }
      if (!inline) {
        RunMessages.start(scatterSends[chunk]);
      }
      if (chunk > 0) {
        reduceAndReturn(chunk - 1, op, inline);
      }
    }
    if (chunks > 0) {
      reduceAndReturn(chunks - 1, op, inline);
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
      RunMessages.await(group, gatherReceives[chunk]);
      RunMessages.await(group, gatherSends[chunk]);
    }
  }

  private boolean hasInlinePayload(int peer) {
    return carries && group.arrivals().hasInlinePayload(peer);
  }

  private boolean isAwaited(int chunk, int peer) {
    return scatterReceives[chunk][peer] != null && !hasInlinePayload(peer);
  }

  private void reduceAndReturn(int chunk, ReduceOp op, boolean inline) {
    int rank = group.rank();
    for (int peer = 0; peer < sources.length; peer++) {
      if (isAwaited(chunk, peer)) {
        group.await(scatterReceives[chunk][peer], peer);
      }
    }
    if (contributions[chunk] != null) {
      for (int peer = 0; peer < sources.length; peer++) {
        boolean carried = peer != rank && hasInlinePayload(peer);
        sources[peer] = carried ? inlinePayloadOf(peer) : contributions[chunk][peer];
      }
      device.reduce(sources, sources[rank], op);
      device.await(sources[rank]);
    }
    if (!inline) {
      RunMessages.await(group, scatterSends[chunk]); // before the results overwrite their memory
    }
    RunMessages.start(gatherReceives[chunk]);
    RunMessages.start(gatherSends[chunk]);
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
