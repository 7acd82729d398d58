package org.gradientsync.core.collectives.nodes;

/**
 * The links of nodes in virtual time. A node's messages leave one after the other, and so they
 * arrive: the first byte after the latency, the last one when both links have carried all of it.
 * The network between the links is never full.
 */
final class VirtualLinks {
  /** Handles events at their times. */
  interface Handler {
    void handle(long time, long event);
  }

  private static final long ARRIVING = 1L << 62;

  /** The bits of an event that the handler may use. */
  private static final int NODE_SHIFT = 44;

  private final ModelledMachine machine;
  private final EventQueue queue = new EventQueue();
  private final long[] sendsUntil;
  private final long[] receivesUntil;
  private final long[] messages;
  private final long[] bytes;

  VirtualLinks(ModelledMachine machine, int nodes) {
    this.machine = machine;
    sendsUntil = new long[nodes];
    receivesUntil = new long[nodes];
    messages = new long[nodes];
    bytes = new long[nodes];
  }

  /**
   * Sends messages that leave together.
   *
   * @param count the number of messages
   * @param size of all of them together
   * @param event when the last byte is there; less than 2^44
   * @return when the last byte has left
   */
  long send(int from, int to, long time, int count, long size, long event) {
    messages[from] += count;
    bytes[from] += size;
    long start = Math.max(time, sendsUntil[from]);
    long duration = machine.linkTime(size);
    sendsUntil[from] = start + duration;
    queue.add(start + machine.latency(), ARRIVING | (long) to << NODE_SHIFT | event, duration);
    return start + duration;
  }

  /** Lets something happen. */
  void at(long time, long event) {
    queue.add(time, event, 0);
  }

  /** Handles all events. Returns the time of the last one. */
  long run(Handler handler) {
    while (queue.next()) {
      long event = queue.event();
      if ((event & ARRIVING) == 0) {
        handler.handle(queue.time(), event);
      } else {
        int to = (int) ((event & ~ARRIVING) >>> NODE_SHIFT);
        long end = Math.max(queue.time(), receivesUntil[to]) + queue.value();
        receivesUntil[to] = end;
        queue.add(end, event & (1L << NODE_SHIFT) - 1, 0);
      }
    }
    return queue.time();
  }

  /** The number of messages that each node has sent to others. */
  long[] messages() {
    return messages.clone();
  }

  /** The number of bytes that each node has sent to others. */
  long[] bytes() {
    return bytes.clone();
  }
}
