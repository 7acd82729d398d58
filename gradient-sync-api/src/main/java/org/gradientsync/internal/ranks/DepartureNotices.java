package org.gradientsync.internal.ranks;

import java.util.Optional;
import java.util.concurrent.ConcurrentMap;
import java.util.function.IntPredicate;

/**
 * Word from the other ranks of a group that they leave it, or have given up a call and make no
 * more, and why. For any thread; takes no group's lock.
 */
public interface DepartureNotices extends AutoCloseable {
  /** Of a longer reason the others see the beginning. */
  int REASON_BYTES = 496;

  /**
   * Listens from now on: by messages, or where the ranks are threads of one JVM, in their memory.
   *
   * @param shared what all ranks have in common, if they are threads of one JVM
   * @param generation tells this group from earlier owners of its tags
   */
  static DepartureNotices of(
      GroupTransport group,
      GroupKey key,
      Optional<ConcurrentMap<Object, Object>> shared,
      long generation) {
    ConcurrentMap<Object, Object> common = shared.orElse(null);
    return common == null
        ? new MessageDepartureNotices(group, generation)
        : new ThreadDepartureNotices(common, key, group.rank(), group.size());
  }

  /** Whether a rank has said that it has left this very group. */
  boolean hasLeft(int peer);

  /** Whether a rank has said anything: that it has left, or has given up a call. */
  boolean hasLeftOrFailed(int peer);

  /** Why a rank has given up a call, or an empty text if it has not said that it has. */
  String whyGivenUp(int peer);

  /** Why a rank has left, or an empty text if it has not, or has not said. */
  String reason(int peer);

  /** How a rank has left that has said so. */
  Departure departure(int peer);

  /**
   * Tells the others that this rank leaves; waits for nobody. Sending to a rank that is gone can
   * make MPI end this process.
   *
   * @param reason what has ended this rank, or an empty text
   * @param unreachable who need not be told
   */
  void send(Departure departure, String reason, IntPredicate unreachable);

  /** Tells the others that this rank has given up, as {@link #send} does; it leaves later. */
  void sendFailure(String reason, IntPredicate unreachable);

  @Override
  void close();
}
