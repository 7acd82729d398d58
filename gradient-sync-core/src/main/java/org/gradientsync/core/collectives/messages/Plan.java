package org.gradientsync.core.collectives.messages;

import org.gradientsync.spi.CollectiveCall;

/**
 * One algorithm for one call: its messages, views and scratch memory, prepared once and run many
 * times. The reducer holds the group's lock.
 */
interface Plan extends AutoCloseable {
  /**
   * Runs the call after its rendezvous.
   *
   * @param call equal to the one that this was prepared for
   */
  void run(CollectiveCall call);

  @Override
  void close();
}
