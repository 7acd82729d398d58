package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.spi.Message;

/**
 * A rank's contributions to a small all-reduce. They travel in the messages of the rendezvous,
 * after the {@link CallRecord}, so no further message is needed. If the calls do not match, the
 * receivers ignore the payload.
 */
public final class InlinePayload implements AutoCloseable {
  /** For each rank. Above this size, one more message costs little, and copying costs more. */
  private static final int MAX_BYTES = 128 << 10;

  private static final int MAX_BYTES_FOR_ALL = 4 << 20; // each group holds this much

  private final ByteBuffer[] memory;
  private final ByteBuffer[] elements;
  private final Message[] sends;

  private InlinePayload(ByteBuffer[] memory, ByteBuffer[] elements, Message[] sends) {
    this.memory = memory;
    this.elements = elements;
    this.sends = sends;
  }

  /** The maximum payload for each rank, in bytes. */
  static int most(int ranks) {
    return Math.min(MAX_BYTES, MAX_BYTES_FOR_ALL / ranks / Long.BYTES * Long.BYTES);
  }

  /**
   * @param elements the contributions for each other rank; null where there are none
   */
  public static InlinePayload of(GroupTransport group, ByteBuffer[] elements) {
    int size = group.size();
    ByteBuffer[] memory = new ByteBuffer[size];
    Message[] sends = new Message[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != group.rank()) {
        int bytes = elements[peer] == null ? 0 : elements[peer].capacity();
        memory[peer] = HostBuffers.allocate(CallRecord.BYTES + bytes);
        sends[peer] = group.sender(memory[peer], peer, Channel.PAYLOAD);
      }
    }
    return new InlinePayload(memory, elements, sends);
  }

  /** Copies the current elements into the messages. */
  public void load() {
    for (int peer = 0; peer < elements.length; peer++) {
      if (elements[peer] != null) {
        memory[peer].put(CallRecord.BYTES, elements[peer], 0, elements[peer].capacity());
      }
    }
  }

  /** Sends the call and the payload to a rank. */
  void send(int peer, ByteBuffer call) {
    memory[peer].put(0, call, 0, CallRecord.BYTES);
    sends[peer].start();
  }

  /** Finishes when the payload was sent to a rank. */
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
