package org.gradientsync.core.group;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.spi.HostElement;
import org.gradientsync.spi.Message;

/**
 * Moves any Java buffers between two ranks through pieces of direct memory. For the control plane:
 * simple rather than fast.
 */
public final class Exchange {
  private static final int PIECE_BYTES = 1 << 20;

  private final GroupTransport group;
  private final Wait wait;
  private ByteBuffer outgoing = HostBuffers.allocate(0);
  private ByteBuffer incoming = HostBuffers.allocate(0);

  Exchange(GroupTransport group, Wait wait) {
    this.group = group;
    this.wait = wait;
  }

  public void send(Buffer data, int from, int count, int destination, int channel) {
    move(data, from, count, destination, null, 0, 0, 0, channel);
  }

  public void receive(Buffer data, int from, int count, int source, int channel) {
    move(null, 0, 0, 0, data, from, count, source, channel);
  }

  /**
   * Concatenates the data of all ranks, after a rendezvous. Each rank passes on what it has, so its
   * data doubles in each step, and the ranks send n log n messages instead of n squared. (J. Bruck
   * et al.: Efficient Algorithms for All-to-All Communications in Multiport Message-Passing
   * Systems. IEEE TPDS 8(11), 1997.)
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
          receive,
          start + rank * count,
          sent * count,
          destination,
          receive,
          start + source * count,
          received * count,
          source,
          Channel.DATA);
      move(
          receive,
          start,
          (blocks - sent) * count,
          destination,
          receive,
          start,
          (blocks - received) * count,
          source,
          Channel.DATA);
    }
  }

  /** Sends and receives at the same time. A count of 0 means no message. */
  public void move(
      Buffer send,
      int sendFrom,
      int sendCount,
      int destination,
      Buffer receive,
      int receiveFrom,
      int receiveCount,
      int source,
      int channel) {
    int sent = 0;
    int received = 0;
    while (sent < sendCount || received < receiveCount) {
      int incomingCount = receive == null ? 0 : piece(receive, receiveCount - received);
      int outgoingCount = send == null ? 0 : piece(send, sendCount - sent);
      try (Message in = receiver(receive, incomingCount, source, channel);
          Message out = sender(send, sendFrom + sent, outgoingCount, destination, channel)) {
        if (in != null) {
          in.start();
        }
        if (out != null) {
          out.start();
        }
        if (in != null) {
          wait.await(in, source);
          Buffer arrived = HostElement.of(receive).view(incoming);
          HostBuffers.copy(arrived, 0, receive, receiveFrom + received, incomingCount);
        }
        if (out != null) {
          wait.await(out, destination);
        }
      }
      sent += outgoingCount;
      received += incomingCount;
    }
  }

  private static int piece(Buffer data, int left) {
    return Math.min(left, PIECE_BYTES / HostElement.of(data).size());
  }

  /** Null if the count is 0. */
  private Message receiver(Buffer data, int count, int source, int channel) {
    if (count == 0) {
      return null;
    }
    int bytes = count * HostElement.of(data).size();
    incoming = atLeast(incoming, bytes);
    return group.receiver(part(incoming, bytes), source, channel);
  }

  /** Null if the count is 0. */
  private Message sender(Buffer data, int from, int count, int destination, int channel) {
    if (count == 0) {
      return null;
    }
    int bytes = count * HostElement.of(data).size();
    outgoing = atLeast(outgoing, bytes);
    HostBuffers.copy(data, from, HostElement.of(data).view(outgoing), 0, count);
    return group.sender(part(outgoing, bytes), destination, channel);
  }

  private static ByteBuffer part(ByteBuffer memory, int bytes) {
    return memory.slice(0, bytes).order(ByteOrder.nativeOrder());
  }

  private static ByteBuffer atLeast(ByteBuffer memory, int bytes) {
    return memory.capacity() >= bytes ? memory : HostBuffers.allocate(bytes);
  }
}
