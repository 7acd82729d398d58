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
final class ThreadDepartureNotices implements DepartureNotices {
  /** How a rank has left. */
  private record Leaving(Departure departure, String reason) {}

  /** What all ranks of a group have said. */
  private static final class Notices {
    private final AtomicReferenceArray<Leaving> left;
    private final AtomicReferenceArray<String> failures;
    private final AtomicInteger closed = new AtomicInteger();

    Notices(int size) {
      left = new AtomicReferenceArray<>(size);
      failures = new AtomicReferenceArray<>(size);
    }
  }

  private final ConcurrentMap<Object, Object> common;
  private final GroupKey key;
  private final int rank;
  private final Notices notices;

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
    notices = (Notices) common.computeIfAbsent(key, k -> new Notices(size));
  }

  @Override
  public boolean hasLeft(int peer) {
    return notices.left.get(peer) != null;
  }

  @Override
  public boolean hasLeftOrFailed(int peer) {
    return hasLeft(peer) || notices.failures.get(peer) != null;
  }

  @Override
  public String whyGivenUp(int peer) {
    String reason = notices.failures.get(peer);
    return reason == null || peer == rank ? "" : reason;
  }

  @Override
  public String reason(int peer) {
    Leaving leaving = notices.left.get(peer);
    return leaving == null || peer == rank ? "" : leaving.reason();
  }

  @Override
  public Departure departure(int peer) {
    return notices.left.get(peer).departure();
  }

  @Override
  public void send(Departure departure, String reason, IntPredicate unreachable) {
    notices.left.set(rank, new Leaving(departure, ShortText.cut(reason, REASON_BYTES)));
  }

  @Override
  public void sendFailure(String reason, IntPredicate unreachable) {
    notices.failures.set(rank, ShortText.cut(reason, REASON_BYTES));
  }

  /** The last rank takes the group's words away. */
  @Override
  public void close() {
    if (notices.closed.incrementAndGet() == notices.left.length()) {
      common.remove(key);
    }
  }
}
