package org.gradientsync.host;

import org.gradientsync.spi.Moment;
import org.gradientsync.spi.WorkQueue;

/** The time of a call on the host. */
final class HostMoment implements Moment {
  private volatile long nanos;

  @Override
  public void record(WorkQueue queue) {
    nanos = System.nanoTime();
  }

  @Override
  public boolean isDone() {
    return true;
  }

  @Override
  public void await() {
    // it is done
  }

  @Override
  public double millisecondsTo(Moment later) {
    return (((HostMoment) later).nanos - nanos) / 1e6;
  }

  @Override
  public void close() {
    // nothing to give up
  }
}
