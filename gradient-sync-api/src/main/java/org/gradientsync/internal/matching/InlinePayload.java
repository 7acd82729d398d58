package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.spi.Message;

/**
 * A rank's contributions to a small all-reduce, which travel in the very messages that say that it
 * has come, behind the {@link Call}: so nobody waits for one message more. A rank whose call does
 * not match has been sent what it does not look at.
 */
public final class InlinePayload implements AutoCloseable {
  /** For each rank; beyond it, one message more to wait for is little, and copying is not. */
  private static final int MAX_BYTES = 128 << 10;

  private static final int MAX_BYTES_FOR_ALL = 4 << 20; // it is held for each group

  private final ByteBuffer[] memory;
  private final ByteBuffer[] elements;
  private final Message[] sends;

  private InlinePayload(ByteBuffer[] memory, ByteBuffer[] elements, Message[] sends) {
    this.memory = memory;
    this.elements = elements;
    this.sends = sends;
  }

  /** The most that can travel to each rank, in bytes. */
  static int most(int ranks) {
    return Math.min(MAX_BYTES, MAX_BYTES_FOR_ALL / ranks / Long.BYTES * Long.BYTES);
  }

  /**
   * Prepares.
   *
   * @param elements for each other rank; null where there are none
   */
  public static InlinePayload of(GroupTransport group, ByteBuffer[] elements) {
    int size = group.size();
    ByteBuffer[] memory = new ByteBuffer[size];
    Message[] sends = new Message[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != group.rank()) {
        int bytes = elements[peer] == null ? 0 : elements[peer].capacity();
        memory[peer] = HostBuffers.allocate(Call.BYTES + bytes);
        sends[peer] = group.sender(memory[peer], peer, Channel.PAYLOAD);
      }
    }
    return new InlinePayload(memory, elements, sends);
  }

  /** Takes the elements as they are now. */
  public void load() {
    for (int peer = 0; peer < elements.length; peer++) {
      if (elements[peer] != null) {
        memory[peer].put(Call.BYTES, elements[peer], 0, elements[peer].capacity());
      }
    }
  }

  /** Sends it to a rank, with what this one asks for. */
  void send(int peer, ByteBuffer call) {
    memory[peer].put(0, call, 0, Call.BYTES);
    sends[peer].start();
  }

  /** What finishes when a rank has been sent it. */
  Message sent(int peer) {
    return sends[peer];
  }

  @Override
  public void close() {
    for (Message message : sends) {
      if (message != null) {
        message.close();
      }
    }
  }
}
