package org.gradientsync.core.local;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;

/** Receives the next message of any rank. Each test looks into all queues. */
final class AnySourceReceive implements Message {
  private final LocalGroup group;
  private final int receiver;
  private final ByteBuffer memory;
  private final int tag;
  private boolean waiting;

  AnySourceReceive(LocalGroup group, int receiver, ByteBuffer memory, int tag) {
    this.group = group;
    this.receiver = receiver;
    this.memory = memory;
    this.tag = tag;
  }

  @Override
  public void start() {
    if (waiting) {
      throw new IllegalStateException("message has been started already: tag=" + tag);
    }
    waiting = true;
  }

  @Override
  public boolean test() {
    for (int sender = 0; waiting && sender < group.size(); sender++) {
      waiting = !group.queue(sender, receiver).take(memory, tag);
    }
    if (waiting) {
      group.requireAlive();
    }
    return !waiting;
  }

  @Override
  public void close() {
    waiting = false;
  }
}
