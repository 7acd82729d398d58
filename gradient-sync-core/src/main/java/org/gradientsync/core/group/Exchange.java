package org.gradientsync.core.group;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.HostElement;
import org.gradientsync.spi.Message;

/**
 * Moves any Java buffers between two ranks through pieces of direct memory. For the control plane:
 * simple rather than fast.
 */
public final class Exchange {
  private static final int PIECE_BYTES = 1 << 20; // of one message
  private static final Message NOTHING = () -> true;

  /** Elements of a buffer to send to a rank, or to receive from it; without any, no message. */
  private record Part(Buffer data, int from, int count, int peer) {
    private static final Part NONE = new Part(null, 0, 0, RankMap.NO_RANK);

    private int bytes() {
      return count * HostElement.of(data).size();
    }

    /** As much as one message has, after a number of others; without elements after the last. */
    private Part piece(int number) {
      int most = count == 0 ? 0 : PIECE_BYTES / HostElement.of(data).size();
      int done = (int) Math.min(count, (long) number * most);
      return new Part(data, from + done, Math.min(count - done, most), peer);
    }
  }

  private final GroupTransport group;
  private final Wait wait;
  private ByteBuffer outgoing = HostBuffers.allocate(0);
  private ByteBuffer incoming = HostBuffers.allocate(0);

  Exchange(GroupTransport group, Wait wait) {
    this.group = group;
    this.wait = wait;
  }

  /** Sends elements of a collective. */
  public void send(Buffer data, int from, int count, int destination) {
    move(new Part(data, from, count, destination), Part.NONE, Channel.DATA);
  }

  /** Receives elements of a collective. */
  public void receive(Buffer data, int from, int count, int source) {
    move(Part.NONE, new Part(data, from, count, source), Channel.DATA);
  }

  /** Moves up to one message to a rank and one from a rank, which have matched. */
  public void move(List<CollectiveCall> messages) {
    Part send = Part.NONE;
    Part receive = Part.NONE;
    for (CollectiveCall message : messages) {
      Buffer data = ((HostCall) message).hostBuffer();
      Part part = new Part(data, data.position(), data.remaining(), message.peer());
      send = message.sends() ? part : send;
      receive = message.sends() ? receive : part;
    }
    move(send, receive, Channel.MESSAGES);
  }

  /**
   * Concatenates the data of all ranks, after a rendezvous. Each rank passes on what it has, so its
   * data doubles in each step: n log n messages instead of n squared (J. Bruck et al.: Efficient
   * Algorithms for All-to-All Communications in Multiport Message-Passing Systems. IEEE TPDS 8(11),
   * 1997).
   */
  public void allGather(Buffer send, Buffer receive) {
    int rank = group.rank();
    int size = group.size();
    int count = send.remaining();
    int start = receive.position();
    HostBuffers.copy(send, send.position(), receive, start + rank * count, count);
    for (int have = 1; have < size; have *= 2) {
      int blocks = Math.min(have, size - have);
      int destination = (rank + size - have) % size;
      int source = (rank + have) % size;
      // The blocks start at the sender's own and may wrap around from the last rank to the first.
      int sent = Math.min(blocks, size - rank);
      int received = Math.min(blocks, size - source);
      move(
          new Part(receive, start + rank * count, sent * count, destination),
          new Part(receive, start + source * count, received * count, source),
          Channel.DATA);
      move(
          new Part(receive, start, (blocks - sent) * count, destination),
          new Part(receive, start, (blocks - received) * count, source),
          Channel.DATA);
    }
  }

  /** Sends and receives at the same time. */
  private void move(Part send, Part receive, int channel) {
    for (int number = 0; ; number++) {
      Part out = send.piece(number);
      Part in = receive.piece(number);
      if (out.count + in.count == 0) {
        return;
      }
      try (Message receiver = in.count == 0 ? NOTHING : receiver(in, channel);
          Message sender = out.count == 0 ? NOTHING : sender(out, channel)) {
        receiver.start();
        sender.start();
        if (in.count > 0) {
          wait.await(receiver, in.peer);
          HostBuffers.copy(HostElement.of(in.data).view(incoming), 0, in.data, in.from, in.count);
        }
        if (out.count > 0) {
          wait.await(sender, out.peer);
        }
      }
    }
  }

  private Message receiver(Part part, int channel) {
    incoming = atLeast(incoming, part.bytes());
    return group.receiver(part(incoming, part.bytes()), part.peer, channel);
  }

  private Message sender(Part part, int channel) {
    outgoing = atLeast(outgoing, part.bytes());
    HostBuffers.copy(part.data, part.from, HostElement.of(part.data).view(outgoing), 0, part.count);
    return group.sender(part(outgoing, part.bytes()), part.peer, channel);
  }

  private static ByteBuffer part(ByteBuffer memory, int bytes) {
    return memory.slice(0, bytes).order(ByteOrder.nativeOrder());
  }

  private static ByteBuffer atLeast(ByteBuffer memory, int bytes) {
    return memory.capacity() >= bytes ? memory : HostBuffers.allocate(bytes);
  }
}
