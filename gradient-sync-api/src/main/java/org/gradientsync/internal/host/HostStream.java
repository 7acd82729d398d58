package org.gradientsync.internal.host;

import org.gradientsync.Event;
import org.gradientsync.Stream;

/** The order of the host's calls: each is finished before the next begins. */
enum HostStream implements Stream {
  QUEUE;

  @Override
  public void waitFor(Event event) {
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
