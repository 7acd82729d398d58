package org.gradientsync.core.buckets;

import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.diagnosis.Watch;

/**
 * Interrupts a hook that blocks: that neither returns nor makes a call for longer than calls may
 * take. Otherwise all ranks would wait for ever if the hook of each blocks.
 */
final class HookWatch implements AutoCloseable {
  private final GroupCommunicator calls;
  private final long limitNanos;
  private final WaitClock clock = new WaitClock(Watch.PERIOD.multipliedBy(2));
  private final Runnable look = this::look;
  private Thread running; // a hook, or null
  private boolean interrupted;
  private long sinceLastCall;

  /**
   * @param calls of the hook
   */
  HookWatch(GroupCommunicator calls) {
    this.calls = calls;
    long timeoutNanos = calls.timeoutNanos();
    limitNanos = timeoutNanos + timeoutNanos / 4; // so that a call that waits throws first
    Watch.add(look);
  }

  /** The calling thread begins a hook. */
  synchronized void begin() {
    running = Thread.currentThread();
    interrupted = false;
    sinceLastCall = Long.MAX_VALUE;
  }

  /** The hook has ended. Returns whether it was interrupted, and clears the interrupt. */
  synchronized boolean end() {
    running = null;
    if (interrupted) {
      Thread.interrupted();
    }
    return interrupted;
  }

  private synchronized void look() {
    if (running == null || interrupted) {
      return;
    }
    long since = calls.sinceLastCall();
    if (since < sinceLastCall) { // a hook or a call has just begun, or a call has ended
      clock.restart();
    }
    sinceLastCall = since;
    if (clock.look() > limitNanos) {
      interrupted = true;
      running.interrupt();
    }
  }

  @Override
  public void close() {
    Watch.remove(look);
  }
}
