package org.gradientsync.core.ranks;

import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntPredicate;

/**
 * Departure notices for ranks that are threads of one JVM: each rank writes to its own slot in
 * shared memory. Messages would need a buffer for each pair of ranks.
 */
final class ThreadDepartureNotices implements DepartureNotices {
  private record Leaving(Departure departure, String reason) {}

  private record Failure(String reason, boolean byItself) {}

  /** The notices of all ranks of a group. */
  private static final class Notices {
    private final AtomicReferenceArray<Leaving> left;
    private final AtomicReferenceArray<Failure> failures;
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
   * @param common the map that all ranks share
   */
  ThreadDepartureNotices(ConcurrentMap<Object, Object> common, GroupKey key, int rank, int size) {
    this.common = common;
    this.key = key;
    this.rank = rank;
    notices = (Notices) common.computeIfAbsent(key, k -> new Notices(size));
  }

  @Override
  public void read() {
    // all ranks see the same notices
  }

  @Override
  public int otherGone(IntPredicate needed) {
    return RankMap.NO_RANK;
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
    Failure failure = notices.failures.get(peer);
    return failure == null || peer == rank ? "" : failure.reason();
  }

  @Override
  public boolean hasFailedByItself(int peer) {
    Failure failure = notices.failures.get(peer);
    return failure != null && failure.byItself();
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
  public void sendFailure(String reason, boolean byItself, IntPredicate unreachable) {
    notices.failures.set(rank, new Failure(ShortText.cut(reason, REASON_BYTES), byItself));
  }

  /** The last rank removes the notices from the shared map. */
  @Override
  public void close() {
    if (notices.closed.incrementAndGet() == notices.left.length()) {
      common.remove(key);
    }
  }
}
