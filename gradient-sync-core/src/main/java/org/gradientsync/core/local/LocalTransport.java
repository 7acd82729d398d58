package org.gradientsync.core.local;

import java.nio.ByteBuffer;
import java.util.List;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** Messages between threads of one JVM, which are copies from memory to memory. */
public final class LocalTransport implements Transport {
  /** The launcher's name. */
  public static final String NAME = "local";

  private final LocalGroup group;
  private final int rank;

  public LocalTransport(LocalGroup group, int rank) {
    this.group = group;
    this.rank = rank;
  }

  LocalGroup group() {
    return group;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return group.size();
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
    return group.isAlive(other);
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return group.queue(rank, peer).new LocalMessage(memory, tag, true);
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    if (peer == ANY_RANK) {
      return new AnySourceReceive(group, rank, memory, tag);
    }
    return group.queue(peer, rank).new LocalMessage(memory, tag, false);
  }

  @Override
  public void goOnWithout(List<Integer> lost) {
    group.goOnWithout(rank, lost);
  }

  @Override
  public void close() {
    // garbage collection frees the queues
  }
}
