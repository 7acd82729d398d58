package org.gradientsync.spi;

import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;

/**
 * A sync's group of ranks as a {@link Reducer} sees it: the ranks' identities, the rendezvous
 * before a call, waiting, and failing. The library implements it; backends use it.
 *
 * <p>The group's monitor orders the calls of several threads. A reducer holds it for the duration
 * of a call. Without it, only the methods marked "Any thread may call it" may be called.
 *
 * <p>A call begins with a rendezvous, in which the ranks compare their calls. So the ranks detect
 * different calls before any buffer is touched, and know the number of a missing rank. A reducer
 * whose device compares the calls lets the ranks meet once for a buffer, by {@link #run} with an
 * empty body. Its later calls it records in {@link #deviceCalls}.
 */
public interface RankGroup extends AutoCloseable {
  /** The value that stands for no rank. */
  int NO_RANK = -1;

  /** {@return this rank's number in the group, from 0 to size - 1} Any thread may call it. */
  int rank();

  /** {@return the number of ranks in the group, 1 or more} Any thread may call it. */
  int size();

  /**
   * {@return the whole job's transport, which uses the job's rank numbers} Any thread may call it.
   */
  Transport transport();

  /** {@return the group's time-outs} Any thread may call it. */
  Timeouts timeouts();

  /**
   * {@return a rank's number, host and process, for errors, for example {@code rank 3 (host=node7,
   * process=4711)}} Any thread may call it.
   *
   * @param peer a rank of the group
   */
  String name(int peer);

  /**
   * {@return the {@link #name} of several ranks, or only their numbers if there are many, for
   * example {@code rank 1 (host=node7, process=4711) and rank 2 (...)}} Any thread may call it.
   *
   * @param peers ranks of the group
   */
  String names(List<Integer> peers);

  /**
   * {@return whether a rank is alive: false if it is known to have died} Any thread may call it.
   *
   * @param peer a rank of the group
   */
  boolean isAlive(int peer);

  /**
   * {@return the reason that another rank gave when it left the group, for example {@code it closed
   * its side or ended}, or an empty text if it has not left} Any thread may call it.
   *
   * @param peer another rank
   */
  String whyLeft(int peer);

  /**
   * {@return whether another rank has told this one that a call of it failed, or that it has left}
   * Any thread may call it.
   *
   * @param peer another rank
   */
  boolean hasGivenUp(int peer);

  /**
   * {@return the reason that another rank gave when one of its calls failed, the message of its
   * exception, or an empty text} Waits for the reason for up to 200 ms, because the failure can be
   * visible earlier. Any thread may call it.
   *
   * @param peer another rank, which is known to have failed or left
   */
  String whyGivenUp(int peer);

  /**
   * Splits the group, for calls of a part of the ranks, or for calls that may fail without breaking
   * this group. Collective. Takes the monitor itself.
   *
   * @param color ranks with the same one are in the same new group; 0 or more
   * @param key orders the ranks in it; those with the same one keep their order
   * @return a group with the same time-outs, which the caller closes
   */
  RankGroup split(int color, int key);

  /** Leaves a group that {@link #split} made. Waits for no rank. Takes the monitor itself. */
  @Override
  void close();

  /**
   * Runs a call from its rendezvous to its end: meets the other ranks, runs the body, and records
   * that the call has ended. Takes the monitor itself. A body that throws leaves other ranks
   * waiting, so whatever it throws breaks the group.
   *
   * @param call this rank's call
   * @param body moves and reduces the elements after the rendezvous; create it once, because this
   *     method allocates nothing
   * @throws MismatchedCallException on every rank if the ranks' calls differ; the body does not run
   * @throws RankLostException if a rank does not join, or the body throws
   */
  void run(CollectiveCall call, Consumer<CollectiveCall> body);

  /**
   * Exchanges several messages, which the ranks may list in any order. Messages are divided into
   * rounds that have at most one message to and one from each rank. Ranks meet for each round, and
   * the body then moves the messages that match. Takes the monitor itself. A body that throws
   * breaks the group.
   *
   * @param messages sends and receives; those of two ranks in one direction match in their order
   * @param body moves the messages of one round at the same time; create it once
   * @throws MismatchedCallException on both ranks of a message whose type, count or tag differs,
   *     after all other messages were exchanged
   * @throws RankLostException if a rank does not join, or the body throws
   */
  void exchange(List<CollectiveCall> messages, Consumer<List<CollectiveCall>> body);

  /**
   * Meets the other ranks before they prepare a call, each for itself.
   *
   * @param call the call that will be made
   * @throws MismatchedCallException on every rank if the ranks' calls differ
   * @throws RankLostException if a rank does not join
   */
  void meetToPrepare(CollectiveCall call);

  /**
   * {@return the record of calls that the device runs without a rendezvous of the hosts, always the
   * same object} Any thread may call it.
   */
  DeviceCalls deviceCalls();

  /**
   * Waits for a message, or for anything else that depends on another rank.
   *
   * @param message a started message
   * @param peer the rank of the group at its other end
   * @throws RankLostException if that rank does not complete the message in time
   */
  void await(Message message, int peer);

  /**
   * Throws if the group cannot be used. Takes the monitor itself. Any thread may call it.
   *
   * @throws IllegalStateException if it is closed
   * @throws RankLostException if an earlier failure broke the group
   * @throws GradientSyncException if the process is ending
   */
  void requireUsable();

  /**
   * {@return whether an earlier failure broke the group, so that every later call throws} Takes the
   * monitor itself. Any thread may call it.
   */
  boolean isBroken();

  /**
   * Breaks the group for a failure after the rendezvous: other ranks cannot continue either.
   *
   * @param message the failure, to which this method adds this rank and its call
   * @param cause the exception of the layer below, or null
   * @return the exception to throw
   * @throws GradientSyncException if the process is ending, which has caused the failure
   */
  RankLostException broken(String message, Throwable cause);

  /**
   * Breaks the group because a call has failed after its rendezvous. {@link #run} does so for what
   * its body throws.
   *
   * @param cause what the call has thrown
   * @return the exception to throw: the cause itself if it has broken the group, or is a {@link
   *     RankLostException} of a broken one
   */
  RuntimeException failed(Throwable cause);

  /**
   * Breaks the group after a time-out. Collects the ranks' reports first.
   *
   * @param message the missing ranks, and how long this rank has waited
   * @return the exception to throw
   */
  RankLostException timedOut(String message);

  /**
   * Breaks the group because the ranks' calls differ, if that is detected too late to continue.
   *
   * @param table each rank's call
   * @return the exception to throw
   */
  MismatchedCallException mismatched(String table);

  /**
   * Notes that all ranks throw an exception in the same call, because they have found the same. A
   * hook of buckets that lets it through then ends the step alone, and not the sync.
   *
   * @param failure this rank's
   */
  void thrownByAll(RuntimeException failure);

  /**
   * Adds a check to run ten times a second while a call waits on the host. Any thread may call it.
   *
   * @param check throws what {@link #broken} or {@link #mismatched} returns if the wait cannot end
   */
  void addCheck(Runnable check);

  /**
   * Removes a check. Any thread may call it.
   *
   * @param check the check that was passed to {@link #addCheck}
   */
  void removeCheck(Runnable check);
}
