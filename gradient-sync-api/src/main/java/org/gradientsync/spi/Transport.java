package org.gradientsync.spi;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import org.gradientsync.UnavailableException;

/**
 * A launcher's backend: the ranks of one job, and messages between them. The library implements
 * everything else (communicators, collectives, time-outs, the comparison of calls) on top of it.
 * For ranks that cannot share memory the backend adds a {@link ReducerProvider}, which may create
 * what {@link ReducerParts#overMessages} returns.
 *
 * <p>Thread-safe, unless the backend documents otherwise.
 */
public interface Transport extends AutoCloseable {
  /** The largest tag; the smallest is 0. Every known MPI library supports tags up to 2^23 - 1. */
  int MAX_TAG = (1 << 23) - 1;

  /** Stands for all other ranks in {@link #receiver}. */
  int ANY_RANK = -1;

  /** {@return the launcher's name, as {@link Launcher#name()}, for example {@code mpi}} */
  String name();

  /** {@return this rank's number in the job, from 0 to size - 1} */
  int rank();

  /** {@return the number of ranks in the job, 1 or more} */
  int size();

  /**
   * {@return the node on which a rank runs: a number that is the same for ranks on the same node,
   * and different for ranks on different nodes}
   *
   * @param rank a rank of the job
   */
  int nodeOf(int rank);

  /**
   * {@return the host and process of a rank, for errors, for example {@code host=node7,
   * process=4711}, or an empty text}
   *
   * @param rank a rank of the job
   */
  default String placeOf(int rank) {
    return "";
  }

  /**
   * {@return whether a rank is alive, as far as this rank knows without communication: false only
   * if the rank is known to have died}
   *
   * @param rank a rank of the job
   */
  default boolean isAlive(int rank) {
    return true;
  }

  /**
   * {@return whether a rank may live although {@link #isAlive} may say otherwise, because a divided
   * network hides it: false only if the rank is known to have ended}
   *
   * @param rank a rank of the job
   */
  default boolean mayLive(int rank) {
    return isAlive(rank);
  }

  /**
   * {@return what has become of a rank that is not alive, for errors, such as {@code has died}}
   *
   * @param rank a rank of the job
   */
  default String fate(int rank) {
    return mayLive(rank) ? "cannot be reached" : "has died";
  }

  /**
   * {@return how this process ends as one of the job's: empty if ranks are not processes that the
   * launcher ends}
   */
  default Optional<JobProcess> process() {
    return Optional.empty();
  }

  /**
   * {@return a new message to send, which the caller closes}
   *
   * @param memory a direct buffer, which is sent from index 0 to its capacity
   * @param peer another rank
   * @param tag from 0 to {@link #MAX_TAG}
   */
  Message sender(ByteBuffer memory, int peer, int tag);

  /**
   * {@return a new message to receive, which the caller closes}
   *
   * @param memory a direct buffer, which receives a message of its capacity or less; bytes behind a
   *     shorter message do not change
   * @param peer another rank, or {@link #ANY_RANK} for the next message with the tag. Messages of
   *     one rank arrive in the order in which it has started them
   * @param tag from 0 to {@link #MAX_TAG}; of any rank only if no receiver of one rank has it
   */
  Message receiver(ByteBuffer memory, int peer, int tag);

  /**
   * Lets the others go on after ranks were lost. Called twice by each rank that is left: with an
   * empty list before the ranks agree, and then with all ranks that are not among them. From the
   * first call on, messages between the ranks that are left must work.
   *
   * @param lost ranks of the job
   * @throws UnavailableException if a job of this kind ends with its first lost rank
   */
  default void goOnWithout(List<Integer> lost) {
    throw new UnavailableException(
        ("this job cannot go on without a rank: launcher=%s, rank=%s;"
                + " start it with gradient-sync run --launcher tcp, or as threads with LocalRanks")
            .formatted(name(), rank()));
  }

  /**
   * Is told that the ranks that are left go on without others that neither came nor said that they
   * leave: those may hang. A launcher may end them.
   *
   * @param silent ranks of the job
   */
  default void leaveSilent(List<Integer> silent) {
    // nobody is to know
  }

  /**
   * {@return how many of the processes that wait can join the job, which then has no more ranks
   * than it began with; 0 or more} Some rank counts them, the others do not know. Refuses those
   * that wait with other settings: only they fail.
   *
   * @param ranks how many take part now
   * @param settings what all ranks of the job give alike, as text
   */
  default int newcomers(int ranks, String settings) {
    return 0;
  }

  /** {@return whether this rank was invited to a job that had started} */
  default boolean hasJoined() {
    return false;
  }

  /**
   * Invites the processes that wait to a new job. Called by one rank, which becomes its rank 0. The
   * ranks that take part now get the first numbers.
   *
   * @param ranks how many those are
   * @param settings as in {@link #newcomers}; others are refused
   * @return what each of them passes to {@link #join}; empty if nobody waits any more
   * @throws org.gradientsync.GradientSyncException if there can be no such job
   */
  default byte[] invite(int ranks, String settings) {
    throw new UnavailableException("nobody can join this job: launcher=" + name());
  }

  /**
   * {@return the transport of the new job, which this rank joins} This one stays open. Called by
   * all ranks that take part.
   *
   * @param invitation what {@link #invite} has returned
   * @param rank this rank's number in the new job
   * @throws org.gradientsync.GradientSyncException if not all ranks come in time
   */
  default Transport join(byte[] invitation, int rank) {
    throw new UnavailableException("nobody can join this job: launcher=" + name());
  }

  /** Leaves the job. Does not wait for other ranks. */
  @Override
  void close();
}
