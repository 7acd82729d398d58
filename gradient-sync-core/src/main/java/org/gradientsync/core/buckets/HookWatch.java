package org.gradientsync.core.buckets;

import java.time.Duration;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.collectives.messages.GroupCommunicator;

/**
 * Interrupts a hook that blocks: that neither returns nor makes a call for longer than calls may
 * take. Otherwise all ranks would wait for ever if the hook of each blocks.
 */
final class HookWatch implements AutoCloseable {
  private static final Duration PERIOD = Duration.ofMillis(250);

  private final GroupCommunicator calls;
  private final long limitNanos;
  private final WaitClock clock = new WaitClock(PERIOD.multipliedBy(2));
  private Thread running; // a hook, or null
  private boolean interrupted;
  private long sinceLastCall;
  private boolean closed;

  /**
   * @param calls of the hook
   */
  HookWatch(GroupCommunicator calls) {
    this.calls = calls;
    long timeoutNanos = calls.timeoutNanos();
    limitNanos = timeoutNanos + timeoutNanos / 4; // so that a call that waits throws first
    Thread thread = new Thread(this::run, "gradient-sync-hook-watch");
    thread.setDaemon(true);
    thread.start();
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

  private synchronized void run() {
    while (!closed) {
      look();
      try {
        wait(PERIOD.toMillis());
      } catch (InterruptedException e) {
        return; // nobody does that
      }
    }
  }

  private void look() {
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
  public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
