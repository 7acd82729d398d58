package org.gradientsync.tcp;

import java.nio.ByteBuffer;

/**
 * A message that has arrived, or was announced, before its receiver was posted. Reused, because
 * ranks are often early. Guarded by the endpoint's lock.
 */
final class Unexpected {
  /** Keeps those that are not in use, by the size of their memory. */
  static final class Pool {
    private static final int SMALLEST = 6; // 64 bytes

    private final Unexpected[] free = new Unexpected[kind(Outbox.EAGER_BYTES) + 1];

    Unexpected take(int tag, int length) {
      int kind = kind(length);
      Unexpected found = free[kind];
      if (found == null) {
        found = new Unexpected(ByteBuffer.allocateDirect(1 << kind + SMALLEST));
      } else {
        free[kind] = found.next;
      }
      found.next = null;
      found.tag = tag;
      found.length = length;
      found.claimedBy = null;
      found.complete = false;
      found.announced = false;
      found.memory.clear().limit(length);
      return found;
    }

    Unexpected announced(int tag, int length, int id) {
      Unexpected found = take(tag, 0);
      found.length = length;
      found.announced = true;
      found.id = id;
      return found;
    }

    void free(Unexpected used) {
      int kind = kind(used.memory.capacity());
      used.next = free[kind];
      free[kind] = used;
    }

    private static int kind(int length) {
      return Math.max(0, 32 - Integer.numberOfLeadingZeros(Math.max(1, length) - 1) - SMALLEST);
    }
  }

  final ByteBuffer memory;
  Unexpected next;
  int tag;
  int length;
  int id; // the sender's number, if it was announced
  boolean announced;
  boolean complete;
  ReceiveMessage claimedBy; // posted while the payload arrives, or null

  private Unexpected(ByteBuffer memory) {
    this.memory = memory;
  }
}
