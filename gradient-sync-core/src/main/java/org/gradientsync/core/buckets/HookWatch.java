package org.gradientsync.core.buckets;

import java.time.Duration;
import org.gradientsync.GradientSync;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Interrupts a hook that blocks: that neither returns nor begins a call for longer than calls may
 * take. Otherwise all ranks would wait for ever if the hook of each blocks. The thread ends when no
 * hook has run for a while.
 */
final class HookWatch implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final Duration PERIOD = Duration.ofMillis(250);
  private static final int MOST_IDLE = 20; // periods

  private final GroupCommunicator calls;
  private final long limitNanos;
  private final WaitClock clock = new WaitClock(PERIOD.multipliedBy(2));
  private Thread thread; // or null
  private Thread running; // a hook, or null
  private boolean interrupted;
  private long begun; // calls
  private boolean closed;

  HookWatch(GroupCommunicator calls) {
    this.calls = calls;
    long timeoutNanos = calls.timeoutNanos();
    limitNanos = timeoutNanos + timeoutNanos / 4; // so that a call that waits throws first
  }

  /** The calling thread begins a hook. */
  synchronized void begin() {
    running = Thread.currentThread();
    interrupted = false;
    clock.restart();
    if (thread == null) {
      thread = new Thread(this::run, "gradient-sync-hook-watch-" + calls.rank());
      thread.setDaemon(true);
      thread.start();
    }
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
    for (int idle = 0; !closed && idle < MOST_IDLE; idle++) {
      if (running != null) {
        idle = 0;
        look();
      }
      try {
        wait(PERIOD.toMillis());
      } catch (InterruptedException e) {
        break; // nobody does that
      }
    }
    thread = null;
  }

  /** Interrupts the hook if it blocks, in each period: it may ignore some. */
  private void look() {
    long now = calls.callsOfJob();
    if (now != begun && !interrupted) {
      clock.restart();
    }
    begun = now;
    if (clock.look() > limitNanos) {
      if (!interrupted) { // the only sign of a hook that ignores interrupts
        Throwable where = new Throwable("the hook is here");
        where.setStackTrace(running.getStackTrace());
        log.error(
            "rank {}: the hook of the buckets has neither returned nor made a call for longer than"
                + " the time-out of {}; interrupting it until it ends",
            calls.rank(),
            Amounts.time(calls.timeout()),
            where);
      }
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
