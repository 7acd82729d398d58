package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;

/**
 * Short messages that the ranks of a group send each other without waiting. One receive is posted
 * for those of all ranks, at the first look. For one thread at a time.
 */
public final class Mailbox implements AutoCloseable {
  private final GroupTransport group;
  private final int channel;
  private final int bytes;
  private ByteBuffer memory;
  private Message receive; // null before the first look
  private boolean holds; // whether the memory holds a message that was returned
  private boolean closed;

  public Mailbox(GroupTransport group, int channel, int bytes) {
    this.group = group;
    this.channel = channel;
    this.bytes = bytes;
  }

  /** Posts the receive without looking for messages. */
  void open() {
    memory = HostBuffers.allocate(bytes);
    receive = group.receiver(memory, Transport.ANY_RANK, channel);
    receive.start();
  }

  public boolean isOpen() {
    return receive != null;
  }

  /**
   * The next message that has arrived, valid until the next call; null if there is none. Throws as
   * long as none can be received: a job may go on after a loss.
   */
  public ByteBuffer next() {
    if (closed) {
      return null;
    }
    if (receive == null) {
      open();
    } else if (holds) {
      holds = false;
      receive.start();
    }
    holds = receive.test();
    return holds ? memory : null;
  }

  /** Sends a message, which does not change from now on. Waits for no rank. */
  public void send(ByteBuffer message, int peer) {
    Message send = group.sender(message, peer, channel);
    send.start();
    send.close();
  }

  @Override
  public void close() {
    closed = true;
    Resources.closeAll(receive);
  }
}
