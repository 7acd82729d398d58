package org.gradientsync.internal.ranks;

import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntPredicate;

/**
 * Word that each rank leaves in a place of its own, where all ranks of the group see it: they are
 * threads of one JVM. A message from each rank to each other one would take memory by pairs of
 * ranks.
 */
public final class ThreadDepartureNotices implements DepartureNotices {
  /** How a rank has left. */
  private record Leaving(Departure departure, String reason) {}

  /** What all ranks of a group have said. */
  private static final class Words {
    private final AtomicReferenceArray<Leaving> left;
    private final AtomicReferenceArray<String> gaveUp;
    private final AtomicInteger closed = new AtomicInteger();

    Words(int size) {
      left = new AtomicReferenceArray<>(size);
      gaveUp = new AtomicReferenceArray<>(size);
    }
  }

  private final ConcurrentMap<Object, Object> common;
  private final GroupKey key;
  private final int rank;
  private final Words words;

  /**
   * Listens from now on.
   *
   * @param common the same for all ranks
   * @param key of the group
   */
  ThreadDepartureNotices(ConcurrentMap<Object, Object> common, GroupKey key, int rank, int size) {
    this.common = common;
    this.key = key;
    this.rank = rank;
    words = (Words) common.computeIfAbsent(key, k -> new Words(size));
  }

  @Override
  public boolean has(int peer) {
    return words.left.get(peer) != null;
  }

  @Override
  public boolean hasAny(int peer) {
    return has(peer) || words.gaveUp.get(peer) != null;
  }

  @Override
  public String whyGivenUp(int peer) {
    String reason = words.gaveUp.get(peer);
    return reason == null || peer == rank ? "" : reason;
  }

  @Override
  public String reason(int peer) {
    Leaving leaving = words.left.get(peer);
    return leaving == null || peer == rank ? "" : leaving.reason();
  }

  @Override
  public Departure departure(int peer) {
    return words.left.get(peer).departure();
  }

  @Override
  public void say(Departure departure, String reason, IntPredicate deaf) {
    words.left.set(rank, new Leaving(departure, ShortText.cut(reason, REASON_BYTES)));
  }

  @Override
  public void sayGivenUp(String reason, IntPredicate deaf) {
    words.gaveUp.set(rank, ShortText.cut(reason, REASON_BYTES));
  }

  /** The last rank takes the group's words away. */
  @Override
  public void close() {
    if (words.closed.incrementAndGet() == words.left.length()) {
      common.remove(key);
    }
  }
}
