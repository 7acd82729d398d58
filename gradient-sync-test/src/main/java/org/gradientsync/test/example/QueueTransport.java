package org.gradientsync.test.example;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Queue;
import java.util.stream.IntStream;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** Messages of one rank: a sender waits in a queue until its receiver has copied from it. */
final class QueueTransport implements Transport {
  final QueueJob job;
  private final int rank;

  QueueTransport(QueueJob job, int rank) {
    this.job = job;
    this.rank = rank;
  }

  @Override
  public String name() {
    return QueueLauncher.NAME;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return job.size;
  }

  @Override
  public int nodeOf(int other) {
    return 0;
  }

  @Override
  public String placeOf(int other) {
    return "thread=rank-" + other;
  }

  @Override
  public boolean isAlive(int other) {
    return job.isAlive(other);
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return new Entry(memory, true, job.queue(rank, peer, tag));
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    return peer == ANY_RANK
        ? new AnyReceiver(memory, tag)
        : new Entry(memory, false, job.queue(peer, rank, tag));
  }

  @Override
  public void close() {}

  /** A message that waits in a queue until the other side starts, and copies. */
  static final class Entry implements Message {
    private final ByteBuffer memory;
    private final boolean sends;
    private final Queue<Entry> queue;
    private volatile boolean waiting;

    private Entry(ByteBuffer memory, boolean sends, Queue<Entry> queue) {
      this.memory = memory;
      this.sends = sends;
      this.queue = queue;
    }

    @Override
    public void start() {
      synchronized (queue) {
        Entry first = queue.peek();
        if (first == null || first.sends == sends) {
          waiting = true;
          queue.add(this);
        } else {
          queue.remove();
          copy(sends ? this : first, sends ? first.memory : memory);
          first.waiting = false;
        }
      }
    }

    @Override
    public boolean test() {
      return !waiting;
    }

    @Override
    public void close() {
      synchronized (queue) {
        if (!sends && queue.remove(this)) { // what was sent arrives nevertheless
          waiting = false;
        }
      }
    }
  }

  private static void copy(Entry sender, ByteBuffer target) {
    target.put(0, sender.memory, 0, sender.memory.capacity());
    sender.waiting = false;
  }

  private final class AnyReceiver implements Message {
    private final ByteBuffer memory;
    private final List<Queue<Entry>> queues; // one from each rank
    private boolean waiting;

    AnyReceiver(ByteBuffer memory, int tag) {
      this.memory = memory;
      queues = IntStream.range(0, job.size).mapToObj(from -> job.queue(from, rank, tag)).toList();
    }

    @Override
    public void start() {
      waiting = true;
    }

    @Override
    public boolean test() {
      for (int peer = 0; waiting && peer < queues.size(); peer++) {
        Queue<Entry> queue = queues.get(peer);
        synchronized (queue) {
          if (!queue.isEmpty()) {
            copy(queue.remove(), memory);
            waiting = false;
          }
        }
      }
      return !waiting;
    }

    @Override
    public void close() {
      waiting = false;
    }
  }
}
