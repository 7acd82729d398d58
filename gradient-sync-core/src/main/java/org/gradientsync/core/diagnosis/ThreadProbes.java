package org.gradientsync.core.diagnosis;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.function.BiConsumer;

/**
 * A queue of probes for each rank, for ranks that are threads of one JVM. Messages would need a
 * buffer for each pair of ranks as soon as one is late.
 */
final class ThreadProbes implements ProbeChannel {
  /** The key of a rank's queue in the shared map. */
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
  public void read(BiConsumer<Probe, Integer> receiver) {
    for (int i = 0; i < AT_A_TIME * size; i++) {
      Sent next = own.poll();
      if (next == null) {
        return;
      }
      receiver.accept(next.probe(), next.from());
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
