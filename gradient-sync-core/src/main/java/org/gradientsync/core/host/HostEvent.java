package org.gradientsync.core.host;

import org.gradientsync.Event;
import org.gradientsync.Stream;

/** The time of a call on the host. */
final class HostEvent implements Event {
  private volatile long nanos;

  @Override
  public void record(Stream stream) {
    nanos = System.nanoTime();
  }

  @Override
  public boolean isDone() {
    return true;
  }

  @Override
  public void await() {
    // it is complete
  }

  @Override
  public double millisecondsTo(Event later) {
    return (((HostEvent) later).nanos - nanos) / 1e6;
  }

  @Override
  public void close() {
    // nothing to release
  }
}
