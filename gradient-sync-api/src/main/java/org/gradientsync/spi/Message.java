package org.gradientsync.spi;

/**
 * One prepared message between two ranks: a fixed piece of memory, a peer and a tag, started as
 * often as needed. Starting and testing allocate nothing.
 *
 * <p>Messages of one sender, receiver and tag match in the order in which they were started. A
 * message may be started again once {@link #test} has said that it is finished.
 */
public interface Message extends AutoCloseable {
  /**
   * Begins the transfer and returns at once. The memory belongs to the message until it has
   * finished.
   */
  void start();

  /**
   * Drives the transfer on and says whether it has finished. A message that was never started, and
   * one that has been found finished, is finished.
   *
   * @return true if the memory may be used again
   * @throws org.gradientsync.RankLostException if the transport knows that the peer is gone
   */
  boolean test();

  /**
   * Gives up what the message holds, cancelling a transfer that has not finished. But what has been
   * started to be sent, and is not longer than 4 KB, arrives all the same.
   */
  @Override
  void close();
}
