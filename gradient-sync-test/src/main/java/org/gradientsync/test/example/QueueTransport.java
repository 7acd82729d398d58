package org.gradientsync.test.example;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** One rank's messages, which wait in the job's queue for their other side. */
record QueueTransport(String name, int rank, int size, QueueJob job) implements Transport {
  @Override
  public int nodeOf(int other) {
    return 0;
  }

  @Override
  public String placeOf(int other) {
    return "thread=" + other;
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return new Entry(memory, rank, peer, tag, true);
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    return new Entry(memory, peer, rank, tag, false);
  }

  @Override
  public void close() {}

  /** One side of a message. The side that starts second copies. */
  final class Entry implements Message {
    private final ByteBuffer memory;
    private final int sender;
    private final int receiver;
    private final int tag;
    private final boolean sends;
    private volatile boolean waiting;

    private Entry(ByteBuffer memory, int sender, int receiver, int tag, boolean sends) {
      this.memory = memory;
      this.sender = sender;
      this.receiver = receiver;
      this.tag = tag;
      this.sends = sends;
    }

    @Override
    public void start() {
      synchronized (job.queue) {
        for (int i = 0; i < job.queue.size(); i++) {
          if (matches(job.queue.get(i))) {
            Entry other = job.queue.remove(i);
            ByteBuffer sent = sends ? memory : other.memory;
            (sends ? other.memory : memory).put(0, sent, 0, sent.capacity());
            other.waiting = false;
            return;
          }
        }
        waiting = true;
        job.queue.add(this);
      }
    }

    private boolean matches(Entry other) {
      return sends != other.sends
          && receiver == other.receiver
          && tag == other.tag
          && (sender == other.sender || sender == ANY_RANK || other.sender == ANY_RANK);
    }

    @Override
    public boolean test() {
      return !waiting;
    }

    @Override
    public void close() {
      synchronized (job.queue) {
        if (!sends) { // what was sent arrives nevertheless
          job.queue.remove(this);
          waiting = false;
        }
      }
    }
  }
}
