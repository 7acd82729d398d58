package org.gradientsync.core.ranks;

import java.util.Optional;
import java.util.concurrent.ConcurrentMap;
import java.util.function.IntPredicate;

/**
 * Notices that ranks of a group send when they leave it, or when a call has failed and they make no
 * further calls. Any thread may call this; it takes no group's lock.
 */
public interface DepartureNotices extends AutoCloseable {
  /** The maximum size of a reason. Longer ones are truncated. */
  int REASON_BYTES = 496;

  /**
   * Starts to receive notices: through shared Java objects if the ranks are threads of one JVM,
   * otherwise by messages.
   *
   * @param shared the map that all ranks share if they are threads of one JVM
   * @param generation distinguishes this group from earlier owners of its tags
   * @param dead the ranks that are known to have died
   */
  static DepartureNotices of(
      GroupTransport group,
      GroupKey key,
      Optional<ConcurrentMap<Object, Object>> shared,
      long generation,
      IntPredicate dead) {
    ConcurrentMap<Object, Object> common = shared.orElse(null);
    return common == null
        ? new MessageDepartureNotices(group, generation, dead)
        : new ThreadDepartureNotices(common, key, group.rank(), group.size());
  }

  /** Receives what has arrived, and passes on what others may not know. */
  void read();

  /** Whether a rank has left this group. */
  boolean hasLeft(int peer);

  /** Whether a rank has sent any notice. */
  boolean hasLeftOrFailed(int peer);

  /**
   * A rank that ends this rank's wait for another one, whose own notices may not come this far: it
   * has failed, or it has left and is needed.
   *
   * @return {@link RankMap#NO_RANK} if there is none, or each rank's notices go to all others
   */
  int otherGone(IntPredicate needed);

  /** Why a call of a rank failed, or an empty text if the rank has sent no failure notice. */
  String whyGivenUp(int peer);

  /** Whether a rank's call failed by itself, not for want of another rank. */
  boolean hasFailedByItself(int peer);

  /** Why a rank left, or an empty text if it has not left or gave no reason. */
  String reason(int peer);

  /** How a rank left; only after {@link #hasLeft}. */
  Departure departure(int peer);

  /**
   * Notifies the others that this rank leaves. Waits for no rank.
   *
   * @param reason what ended this rank, or an empty text
   * @param unreachable ranks to skip: sending to a rank that is gone can make MPI end this process
   */
  void send(Departure departure, String reason, IntPredicate unreachable);

  /**
   * Notifies the others that a call of this rank has failed. The rank leaves later. See {@link
   * #send}.
   *
   * @param byItself whether it failed by itself, not for want of another rank
   */
  void sendFailure(String reason, boolean byItself, IntPredicate unreachable);

  @Override
  void close();
}
