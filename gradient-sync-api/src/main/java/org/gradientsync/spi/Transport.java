package org.gradientsync.spi;

import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.concurrent.ConcurrentMap;

/**
 * What a launcher's backend has to give: the ranks of one job, and messages between them. The rest,
 * the communicators, the collectives, time-outs, the comparing of calls, is written once on top of
 * it in {@code org.gradientsync.internal}.
 *
 * <p>Safe for use by several threads, unless the backend says otherwise.
 */
public interface Transport extends AutoCloseable {
  /** Tags run from 0 to this; 2^23 - 1 is what every known MPI library takes. */
  int MAX_TAG = (1 << 23) - 1;

  /**
   * The launcher's name, as in {@link Launcher#name()}.
   *
   * @return for example {@code local} or {@code mpi}
   */
  String name();

  /**
   * This rank's number in the job.
   *
   * @return from 0 to size - 1
   */
  int rank();

  /**
   * The number of ranks in the job.
   *
   * @return 1 or more
   */
  int size();

  /**
   * Which node a rank runs on.
   *
   * @param rank a rank of the job
   * @return a number that is the same for ranks that share a node, and differs for those that do
   *     not
   */
  int nodeOf(int rank);

  /**
   * Where a rank runs, for the texts of errors.
   *
   * @param rank a rank of the job
   * @return for example {@code host=node7, process=4711}, or an empty text
   */
  default String placeOf(int rank) {
    return "";
  }

  /**
   * Whether a rank is still there, as far as this one can see without communicating.
   *
   * @param rank a rank of the job
   * @return false only if it is known to have died
   */
  default boolean isAlive(int rank) {
    return true;
  }

  /**
   * Whether the library's own threads may send and receive while the program's threads do what they
   * like. After a time-out they ask ranks of other nodes what they are doing.
   *
   * @return false if only threads that make the program's calls may
   */
  default boolean takesOtherThreads() {
    return true;
  }

  /**
   * What the ranks have in common, if all of them are threads of this JVM: they leave there, under
   * keys that they agree on, what takes a message to each other rank otherwise.
   *
   * @return the same map on all ranks, or empty where ranks may be processes of their own
   */
  default Optional<ConcurrentMap<Object, Object>> common() {
    return Optional.empty();
  }

  /**
   * Prepares sending.
   *
   * @param memory a direct buffer; all of it from index 0 to its capacity is sent
   * @param peer another rank
   * @param tag from 0 to {@link #MAX_TAG}
   * @return a message that the caller closes
   */
  Message sender(ByteBuffer memory, int peer, int tag);

  /**
   * Prepares receiving.
   *
   * @param memory a direct buffer; a message of its capacity is expected, or a shorter one, and
   *     then what lies behind stays as it is
   * @param peer another rank
   * @param tag from 0 to {@link #MAX_TAG}
   * @return a message that the caller closes
   */
  Message receiver(ByteBuffer memory, int peer, int tag);

  /** Leaves the job. Does not wait for other ranks. */
  @Override
  void close();
}
