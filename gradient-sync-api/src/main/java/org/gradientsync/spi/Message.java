package org.gradientsync.spi;

/**
 * A persistent message between two ranks: fixed memory, a peer and a tag. It can be started any
 * number of times. Starting and testing allocate nothing.
 *
 * <p>Messages of one sender, receiver and tag match in the order in which they are started. A
 * message may be started again once {@link #test} has returned true.
 *
 * <p>Anything else to wait for with {@link RankGroup#await} is a message of a {@link #test} alone:
 * it needs no start and holds nothing.
 */
@FunctionalInterface
public interface Message extends AutoCloseable {
  /**
   * Starts the transfer and returns at once. The transfer must not depend on {@link #test} of this
   * message alone: a rank that has started several waits for one after the other. The caller must
   * not use the memory until the transfer is complete.
   */
  default void start() {}

  /**
   * {@return whether the memory may be used again: the transfer is complete, or no transfer was
   * started since it was last found complete} Advances the transfer.
   *
   * @throws org.gradientsync.RankLostException if the transport knows that the peer has failed
   */
  boolean test();

  /**
   * Releases the message and cancels an incomplete transfer. A send of up to 4 KB that has been
   * started arrives nevertheless.
   */
  @Override
  default void close() {}
}
