package org.gradientsync.spi;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * One way to make a buffer the reduction over the ranks. It belongs to one sync and is called by
 * one thread at a time, with buffers of that sync's device that are open, and operations that are
 * defined for them.
 *
 * <p>What can be done once per buffer layout (allocation, registration, exchange of addresses) is
 * done at the first call for that buffer and kept; later calls allocate nothing. Calls that differ
 * between the ranks end on every rank in a {@link org.gradientsync.MismatchedCallException} before
 * any data is touched.
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
   * Copies root's elements to all ranks. Ordered on the buffer's stream. Collective.
   *
   * @param buffer the same type and count on all ranks
   * @param root the same on all ranks
   */
  void broadcast(DeviceBuffer buffer, int root);

  /**
   * Prepares a buffer, which the first call for it does otherwise. Collective where it is not
   * nothing.
   *
   * @param buffer the same type and count on all ranks
   */
  default void register(DeviceBuffer buffer) {
    // most prepare so little that the first call may do it
  }

  /**
   * Whether its calls return only when the other ranks have come. Those that do not enqueue their
   * work and leave the host free.
   *
   * @return true if a caller that has other work needs a thread for this
   */
  default boolean blocksHost() {
    return true;
  }

  /**
   * Whether it lets FLOAT32 sums and averages travel as {@link SyncContext#wire()} says. Those that
   * do not are wrapped in a {@link org.gradientsync.internal.collectives.CompressedReducer} where a
   * wire type is set.
   *
   * @return true if it rounds by itself
   */
  default boolean compresses() {
    return false;
  }

  /**
   * Whether it looks by itself for what is not finite, where {@link SyncContext#finite()} asks for
   * it. For those that do not, {@link BackendDevice#firstNotFinite} is asked before each call, and
   * the ranks tell each other when they meet.
   *
   * @return true if there is nothing to do for the caller
   */
  default boolean checksFinite() {
    return false;
  }

  /**
   * What a report is to say of it; called by any thread, while a call may be running.
   *
   * @return lines of text
   */
  default List<String> state() {
    return List.of();
  }

  /** Gives up everything that was prepared, after what is under way on the device. */
  @Override
  void close();
}
