package org.gradientsync.tcp;

/** Messages in the order in which they came. Allocates nothing: the messages are the nodes. */
final class MessageQueue<M extends TcpMessage<M>> {
  private M first;
  private M last;

  boolean isEmpty() {
    return first == null;
  }

  M peek() {
    return first;
  }

  void add(M message) {
    message.next = null;
    if (last == null) {
      first = message;
    } else {
      last.next = message;
    }
    last = message;
  }

  void addFirst(M message) {
    message.next = first;
    first = message;
    if (last == null) {
      last = message;
    }
  }

  M poll() {
    M message = first;
    if (message != null) {
      unlink(null, message);
    }
    return message;
  }

  /** Takes the oldest message with a tag, or returns null. */
  M take(int tag) {
    M before = null;
    for (M m = first; m != null; before = m, m = m.next) {
      if (m.tag == tag) {
        unlink(before, m);
        return m;
      }
    }
    return null;
  }

  /** Returns whether it was in the queue. */
  boolean remove(M message) {
    M before = null;
    for (M m = first; m != null; before = m, m = m.next) {
      if (m == message) {
        unlink(before, m);
        return true;
      }
    }
    return false;
  }

  private void unlink(M before, M message) {
    if (before == null) {
      first = message.next;
    } else {
      before.next = message.next;
    }
    if (last == message) {
      last = before;
    }
    message.next = null;
  }
}
