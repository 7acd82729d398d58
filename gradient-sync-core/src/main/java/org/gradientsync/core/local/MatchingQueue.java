package org.gradientsync.core.local;

import java.nio.ByteBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.Message;

/**
 * The started messages from one rank to another that wait for their counterpart, oldest first. The
 * side that starts second copies the data, so a message is complete as soon as both sides have
 * started it.
 */
public final class MatchingQueue {
  private final LocalGroup group;
  private volatile LocalMessage first; // a list of sends and receives, of which no two match

  MatchingQueue(LocalGroup group) {
    this.group = group;
  }

  /**
   * A persistent message. While it waits it is a node of the queue's list, so starting allocates
   * nothing.
   */
  final class LocalMessage implements Message {
    private final ByteBuffer memory;
    private final int tag;
    private final boolean sends;
    private LocalMessage next;
    private volatile boolean waiting;

    LocalMessage(ByteBuffer memory, int tag, boolean sends) {
      this.memory = memory;
      this.tag = tag;
      this.sends = sends;
    }

    @Override
    public void start() {
      LocalMessage counterpart;
      synchronized (MatchingQueue.this) {
        if (waiting) {
          throw new IllegalStateException("message has been started already: tag=" + tag);
        }
        waiting = true;
        counterpart = takeCounterpartOrAppend();
        if (counterpart == null) {
          return;
        }
      }
      copy(sends ? memory : counterpart.memory, sends ? counterpart.memory : memory, tag);
      counterpart.waiting = false;
      waiting = false;
    }

    @Override
    public boolean test() {
      if (!waiting) {
        return true;
      }
      group.requireAlive();
      return false;
    }

    @Override
    public void close() {
      // A send that was started still arrives, as in a network: the receiver may look for it later.
      if (!sends) {
        synchronized (MatchingQueue.this) {
          remove();
        }
      }
    }

    private LocalMessage takeCounterpartOrAppend() {
      LocalMessage counterpart = takeOldest(!sends, tag);
      if (counterpart != null) {
        return counterpart;
      }
      LocalMessage last = first;
      while (last != null && last.next != null) {
        last = last.next;
      }
      if (last == null) {
        first = this;
      } else {
        last.next = this;
      }
      return null;
    }

    private void remove() {
      LocalMessage before = null;
      for (LocalMessage l = first; l != null; before = l, l = l.next) {
        if (l == this) {
          unlink(before, l);
          waiting = false;
          return;
        }
      }
    }
  }

  /** Receives the oldest message that waits. Returns false if there is none. */
  boolean take(ByteBuffer memory, int tag) {
    if (first == null) {
      return false; // a rank that waits looks often
    }
    LocalMessage send;
    synchronized (this) {
      send = takeOldest(true, tag);
    }
    if (send == null) {
      return false;
    }
    copy(send.memory, memory, tag);
    send.waiting = false;
    return true;
  }

  private static void copy(ByteBuffer from, ByteBuffer to, int tag) {
    if (from.capacity() > to.capacity()) {
      throw new GradientSyncException(
          "message is longer than expected: sent=%s, expected=%s, tag=%s"
              .formatted(from.capacity(), to.capacity(), tag));
    }
    to.put(0, from, 0, from.capacity());
  }

  private LocalMessage takeOldest(boolean sends, int tag) {
    LocalMessage before = null;
    for (LocalMessage l = first; l != null; before = l, l = l.next) {
      if (l.sends == sends && l.tag == tag) {
        unlink(before, l);
        return l;
      }
    }
    return null;
  }

  private void unlink(LocalMessage before, LocalMessage message) {
    if (before == null) {
      first = message.next;
    } else {
      before.next = message.next;
    }
    message.next = null;
  }
}
