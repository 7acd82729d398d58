package org.gradientsync.internal.diagnosis;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiConsumer;

/**
 * A queue for each rank, which the others put probes into: they are threads of one JVM. To be ready
 * for a message of each other rank would take memory by pairs of ranks, as soon as one is late.
 */
final class ThreadProbes implements ProbeChannel {
  /** Of a rank, among what all ranks have in common. */
  private record Inbox(int rank) {}

  private record Sent(Probe probe, int from) {}

  private final ConcurrentMap<Object, Object> common;
  private final Queue<Sent> own;
  private final int rank;
  private final int size;

  ThreadProbes(ConcurrentMap<Object, Object> common, int rank, int size) {
    this.common = common;
    this.rank = rank;
    this.size = size;
    own = inbox(rank);
  }

  @SuppressWarnings("unchecked")
  private Queue<Sent> inbox(int owner) {
    return (Queue<Sent>)
        common.computeIfAbsent(new Inbox(owner), key -> new ConcurrentLinkedQueue<Sent>());
  }

  @Override
  public void read(BiConsumer<Probe, Integer> taker) {
    for (int i = 0; i < AT_A_TIME * size; i++) {
      Sent next = own.poll();
      if (next == null) {
        return;
      }
      taker.accept(next.probe(), next.from());
    }
  }

  @Override
  public void send(Probe probe, int to) {
    inbox(to).add(new Sent(probe, rank));
  }

  @Override
  public void close() {
    own.clear();
  }
}
