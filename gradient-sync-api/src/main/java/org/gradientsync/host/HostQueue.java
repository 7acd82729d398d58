package org.gradientsync.host;

import org.gradientsync.spi.Moment;
import org.gradientsync.spi.WorkQueue;

/** The order of the host's calls: each is finished before the next begins. */
enum HostQueue implements WorkQueue {
  QUEUE;

  @Override
  public void waitFor(Moment moment) {
    // what was recorded is done
  }

  @Override
  public void await() {
    // everything is done
  }

  @Override
  public void close() {
    // nothing to give up
  }
}
