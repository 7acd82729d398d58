package org.gradientsync.spi;

import java.util.List;
import java.util.function.Supplier;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;

/**
 * The ranks that take part in one sync, as a {@link Reducer} sees them: who they are, and how they
 * meet for a call, wait and fail. The library implements it; backends use it.
 *
 * <p>Its monitor orders the calls of several threads. A reducer holds it for the whole of a call,
 * and calls nothing here without it that does not say so.
 *
 * <p>A call begins with a rendezvous, in which the ranks compare what they ask for; so calls that
 * differ are found before any buffer is touched, and a missing rank is known by its number. It ends
 * with {@link #finished}.
 */
public interface RankGroup {
  /** Instead of a rank, where none is meant. */
  int NO_RANK = -1;

  /**
   * This rank's number in the group. For any thread.
   *
   * @return from 0 to size - 1
   */
  int rank();

  /**
   * The number of ranks in the group. For any thread.
   *
   * @return 1 or more
   */
  int size();

  /**
   * The way to the other ranks.
   *
   * @return the transport of the whole job, which has its own rank numbers
   */
  Transport transport();

  /**
   * How long a call waits for another rank.
   *
   * @return what the group was made with
   */
  Timeouts timeouts();

  /**
   * A rank's number, host and process, for messages. For any thread.
   *
   * @param peer a rank of the group
   * @return for example {@code rank 3 (host=node7, process=4711)}
   */
  String name(int peer);

  /**
   * Several ranks as {@link #name} calls them, or their numbers if they are many. For any thread.
   *
   * @param peers ranks of the group
   * @return for example {@code rank 1 (host=node7, process=4711) and rank 2 (...)}
   */
  String names(List<Integer> peers);

  /**
   * Whether a rank is still there. For any thread.
   *
   * @param peer a rank of the group
   * @return false if it is known to have died
   */
  boolean isAlive(int peer);

  /**
   * The reason that another rank gave when it left the group. For any thread.
   *
   * @param peer another rank
   * @return for example {@code it closed its side or ended}, or an empty text if it has not left
   */
  String whyLeft(int peer);

  /**
   * The reason that another rank gave when one of its calls failed. Waits for it up to 200 ms,
   * because the failure itself can be seen earlier. For any thread.
   *
   * @param peer another rank, which is known to have failed or left
   * @return the message of its exception, or an empty text
   */
  String whyGivenUp(int peer);

  /**
   * Meets the other ranks for an all-reduce.
   *
   * @param buffer what is to be reduced
   * @param op the reduction
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  void meetForAllReduce(DeviceBuffer buffer, ReduceOp op);

  /**
   * Meets the other ranks for a broadcast.
   *
   * @param buffer what is to be sent
   * @param root the rank that has the data
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  void meetForBroadcast(DeviceBuffer buffer, int root);

  /**
   * Meets the other ranks for a registration.
   *
   * @param buffer what is to be registered
   * @throws MismatchedCallException on every rank if they do not ask for the same
   * @throws RankLostException if a rank does not come
   */
  void meetForRegistration(DeviceBuffer buffer);

  /** Records that the call that began last has ended on this rank. */
  void finished();

  /**
   * The calls that the device carries out without a rendezvous of the hosts.
   *
   * @return the same object always
   */
  DeviceCalls deviceCalls();

  /**
   * Waits for a message, or for anything else that shows another rank's progress.
   *
   * @param message a started message
   * @param peer the rank of the group at its other end
   * @throws RankLostException if that rank does not do its part in time
   */
  void await(Message message, int peer);

  /**
   * Throws if the group cannot be used. Takes the monitor itself.
   *
   * @throws IllegalStateException if it is closed
   * @throws RankLostException if an earlier call lost a rank
   * @throws GradientSyncException if the process is ending
   */
  void requireUsable();

  /**
   * Whether an earlier call lost a rank. Takes the monitor itself.
   *
   * @return true if every further call will throw
   */
  boolean isBroken();

  /**
   * Breaks the group, for what goes wrong after the ranks have met: the others cannot go on either.
   *
   * @param message what happened; this rank and its call are added
   * @param cause what the layer below threw, or null
   * @return the exception to throw
   * @throws GradientSyncException if the process is ending, which is why it went wrong
   */
  RankLostException lost(String message, Throwable cause);

  /**
   * Breaks the group after a wait that took too long: collects the ranks' reports first.
   *
   * @param message which ranks are missing, and how long this one has waited
   * @return the exception to throw
   */
  RankLostException timedOut(String message);

  /**
   * Breaks the group because the ranks' calls do not match, found too late for going on.
   *
   * @param table who asked for what
   * @return the exception to throw
   */
  MismatchedCallException mismatched(String table);

  /**
   * Adds a check that runs ten times a second while a call waits on the host. For any thread.
   *
   * @param check throws what {@link #lost} or {@link #mismatched} return, if waiting is pointless
   */
  void addCheck(Runnable check);

  /**
   * Removes a check. For any thread.
   *
   * @param check what was given to {@link #addCheck}
   */
  void removeCheck(Runnable check);

  /**
   * Adds lines to this rank's reports. For any thread.
   *
   * @param state gives lines of text; called by any thread
   */
  void addState(Supplier<List<String>> state);
}
