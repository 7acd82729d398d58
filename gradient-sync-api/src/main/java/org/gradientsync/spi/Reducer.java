package org.gradientsync.spi;

import java.util.List;
import org.gradientsync.ReduceOp;

/**
 * A method to reduce buffers over the ranks. A reducer belongs to one sync, which calls it from one
 * thread at a time, with open buffers of its device and operations that are defined for them.
 *
 * <p>The first call does all work that is necessary once for its buffers (allocation, registration,
 * exchange of addresses) and keeps the result. Later calls allocate nothing.
 *
 * <p>Collective methods throw a {@link org.gradientsync.MismatchedCallException} on every rank if
 * the ranks' calls differ, before any data is touched, and a {@link
 * org.gradientsync.RankLostException} if a rank does not join.
 */
public interface Reducer extends AutoCloseable {
  /** {@return the reducer's name, as {@link ReducerProvider#name()}, for example {@code local}} */
  String name();

  /**
   * Runs a call, of which the library has checked types, counts and overlap. Ordered on the stream
   * of {@link CollectiveCall#buffer}. Collective; a message is a call of its two ranks.
   *
   * @param call every kind but {@code BARRIER}; the caller may change it after this method returns
   */
  void run(CollectiveCall call);

  /**
   * Prepares calls with these buffers in advance; otherwise the first one does so. An all-reduce is
   * prepared for every operation. Reads and writes no elements. Collective: the ranks meet and
   * compare the call, even if there is nothing to prepare.
   *
   * @param call a collective that all ranks have an input for, and no message; the caller may
   *     change it after this method returns
   */
  void prepare(CollectiveCall call);

  /**
   * Sends and receives several messages at the same time, so that the ranks may list them in any
   * order. Messages between two ranks in one direction match in the order in which they are listed.
   *
   * @param messages this rank's messages; the same list in each call of a repeated exchange
   * @throws org.gradientsync.MismatchedCallException on both ranks of a message whose type or count
   *     differ, after all other messages were exchanged
   */
  void exchange(List<CollectiveCall> messages);

  /**
   * Fuses all-reduces into one, if this reducer can do that without copying their buffers.
   * Collective: the ranks meet and compare what they fuse, if there is anything to prepare.
   *
   * @param parts two or more buffers of one type, on one stream, none of which overlaps another
   * @param op the operation
   * @param name describes the parts, for the comparison of the ranks' calls
   * @return a buffer with the elements of all parts, one after the other, that is only for {@link
   *     #run} and {@code op}; the caller closes it, before a part. Null on all ranks if the parts
   *     must be copied into a buffer, or reduced one by one
   * @throws IllegalStateException if they can be fused, but the stream is being captured
   */
  default AbstractDeviceBuffer fuse(List<AbstractDeviceBuffer> parts, ReduceOp op, String name) {
    return null;
  }

  /**
   * {@return whether calls block the host until the other ranks have joined, so that overlap with
   * other work of the host needs a separate thread} Others only enqueue their work.
   */
  default boolean blocksHost() {
    return true;
  }

  /**
   * {@return whether this reducer itself converts FLOAT32 sums and averages to the type of {@link
   * Settings#wire()}} Otherwise, if one is set, the library wraps the reducer in one that does.
   */
  default boolean compresses() {
    return false;
  }

  /**
   * {@return whether this reducer itself checks for values that are not finite if {@link
   * Settings#finite()} is set} Otherwise the library calls {@link BackendDevice#firstNotFinite}
   * before each call, and the ranks exchange the result in the rendezvous.
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
   * {@return a description of this reducer for reports, lines of text} Called by any thread,
   * possibly while a call is running.
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
