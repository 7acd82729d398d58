package org.gradientsync.spi;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * A method to reduce buffers over the ranks. A reducer belongs to one sync, which calls it from one
 * thread at a time, with open buffers of its device and operations that are defined for them.
 *
 * <p>The first call for a buffer does all work that is necessary once per buffer layout
 * (allocation, registration, exchange of addresses) and keeps the result. Later calls allocate
 * nothing. If the ranks' calls differ, every rank throws a {@link
 * org.gradientsync.MismatchedCallException} before any data is touched.
 */
public interface Reducer extends AutoCloseable {
  /**
   * The reducer's name, as {@link ReducerProvider#name()}.
   *
   * @return for example {@code local}
   */
  String name();

  /**
   * Reduces in place. Ordered on the buffer's stream. Collective.
   *
   * @param buffer the same type and count on all ranks
   * @param op the same on all ranks
   */
  void allReduce(DeviceBuffer buffer, ReduceOp op);

  /**
   * Copies the root's elements to all ranks. Ordered on the buffer's stream. Collective.
   *
   * @param buffer the same type and count on all ranks
   * @param root the rank that has the data, the same on all ranks
   */
  void broadcast(DeviceBuffer buffer, int root);

  /**
   * Runs a collective with an input and an output, of which the library has checked types, counts
   * and overlap. Ordered on the output's stream, or on the input's if there is no output; the
   * library orders the other one's stream with it. Collective.
   *
   * @param collective the same on all ranks
   * @param in this rank's input, or null if it has none
   * @param out this rank's output, or null if it has none
   * @param op the same on all ranks; null if nothing is reduced
   * @param root the same on all ranks; {@link RankGroup#NO_RANK} if there is none
   */
  void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root);

  /**
   * Sends elements to another rank, which makes the matching {@link #receive}. Ordered on the
   * buffer's stream.
   *
   * @param buffer the same type and count as the receiver's
   * @param peer another rank
   */
  void send(DeviceBuffer buffer, int peer);

  /**
   * Receives elements from another rank, which makes the matching {@link #send}. Ordered on the
   * buffer's stream.
   *
   * @param buffer the same type and count as the sender's
   * @param peer another rank
   */
  void receive(DeviceBuffer buffer, int peer);

  /**
   * Sends and receives several messages at the same time, so that the ranks may list them in any
   * order. Messages between two ranks in one direction match in the order in which they are listed.
   *
   * @param messages this rank's messages; the same list in each call of a repeated exchange
   * @throws org.gradientsync.MismatchedCallException on both ranks of a message whose type or count
   *     differ, after all other messages were exchanged
   */
  void exchange(List<PeerMessage> messages);

  /**
   * Meets the other ranks as for a call ({@link RankGroup#meetForRegistration}), and prepares a
   * buffer in advance; otherwise the first call for it does so. Collective.
   *
   * @param buffer the same type and count on all ranks
   */
  void register(DeviceBuffer buffer);

  /**
   * Prepares calls of {@link #run} with the same arguments in advance; otherwise the first one does
   * so. Reads and writes no elements. Collective, unless it does nothing.
   *
   * @param collective the same on all ranks; one that all ranks have an input for
   * @param in this rank's input
   * @param out this rank's output, or null if it has none
   * @param op the same on all ranks; null if nothing is reduced
   * @param root the same on all ranks; {@link RankGroup#NO_RANK} if there is none
   */
  default void register(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    // most reducers prepare so little that the first call may do it
  }

  /**
   * Whether calls block the host until the other ranks have joined. Reducers that do not block only
   * enqueue their work.
   *
   * @return true if overlap with other work of the host needs a separate thread
   */
  default boolean blocksHost() {
    return true;
  }

  /**
   * Whether this reducer itself converts FLOAT32 sums and averages to the type of {@link
   * SyncContext#wire()}. Otherwise, if a wire type is set, the library wraps the reducer in one
   * that does.
   *
   * @return true if the reducer converts
   */
  default boolean compresses() {
    return false;
  }

  /**
   * Whether this reducer itself checks for values that are not finite if {@link
   * SyncContext#finite()} is set. Otherwise the library calls {@link BackendDevice#firstNotFinite}
   * before each call, and the ranks exchange the result in the rendezvous.
   *
   * @return true if the reducer checks
   */
  default boolean checksFinite() {
    return false;
  }

  /**
   * Throws what the device has reported about earlier calls and the program has not seen. All calls
   * of this reducer do so themselves; the library calls this in its other calls. Neither waits nor
   * allocates if there is nothing to throw. Any thread may call it.
   *
   * @param together whether all ranks make this call, at the same place among the calls of this
   *     reducer. Only then may it throw a failure after which the sync remains usable, because such
   *     failures must end the same call on all ranks
   * @throws org.gradientsync.GradientSyncException if an earlier call has failed on the device
   */
  default void check(boolean together) {
    // reducers that block the host throw in the call itself
  }

  /**
   * Describes this reducer for reports. Called by any thread, possibly while a call is running.
   *
   * @return lines of text
   */
  default List<String> state() {
    return List.of();
  }

  /**
   * Waits for the work enqueued on the device, then releases everything.
   *
   * @throws org.gradientsync.GradientSyncException after that, if a call has failed on the device
   *     and the program has not seen it
   */
  @Override
  void close();
}
