package org.gradientsync.core.host;

import org.gradientsync.Event;
import org.gradientsync.Stream;

/** The stream of the host: each call is complete before the next one begins. */
enum HostStream implements Stream {
  QUEUE;

  @Override
  public void waitFor(Event event) {
    // recorded work is complete
  }

  @Override
  public void await() {
    // all work is complete
  }

  @Override
  public void close() {
    // nothing to release
  }
}
