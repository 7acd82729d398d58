package org.gradientsync.examples.doctor;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sees that all ends in time: each check at its own limit, and the program at that of all. */
final class Clock {
  /** The section for checks that did not finish, or failed. */
  static final String CHECKS = "Checks";

  /** Of those, the program as a whole. */
  static final String ITSELF = "doctor itself";

  private static final Logger log = LoggerFactory.getLogger(Clock.class);

  private final long start;
  private final Duration all;

  /**
   * A clock that has run for a while.
   *
   * @param all what may be used of time, that while included
   */
  Clock(Duration all, Duration used) {
    this.all = all;
    start = System.nanoTime() - used.toNanos();
  }

  /** What is left until a part of the time is over; never negative. */
  Duration until(double part) {
    long left = (long) (all.toNanos() * part) - (System.nanoTime() - start);
    return Duration.ofNanos(Math.max(0, left));
  }

  /**
   * Runs checks side by side, each on a thread that nothing waits for. What a check threw, or that
   * it did not finish, is a fact, too.
   *
   * @param part of the time, at which all of them are given up
   */
  Facts run(List<Check> checks, double part) {
    List<Running> running = new ArrayList<>();
    for (Check check : checks) {
      running.add(new Running(check));
    }
    Facts facts = new Facts();
    for (Running each : running) {
      each.await(until(part));
      facts.addAll(each.facts);
    }
    return facts;
  }

  /** Ends the JVM when the time is over, whatever the other threads do. */
  void guard(Runnable ending) {
    Thread watchdog =
        new Thread(
            () -> {
              sleep(until(1));
              ending.run();
            },
            "doctor-watchdog");
    watchdog.setDaemon(true);
    watchdog.start();
  }

  static void sleep(Duration time) {
    try {
      TimeUnit.NANOSECONDS.sleep(time.toNanos());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static final class Running {
    private final Check check;
    private final Facts facts = new Facts();
    private final Thread thread;
    private final long began = System.nanoTime();

    Running(Check check) {
      this.check = check;
      thread = new Thread(this::work, "doctor: " + check.name());
      thread.setDaemon(true);
      thread.start();
    }

    private void work() {
      try {
        check.work().run(facts);
      } catch (Throwable e) { // natives are loaded, and whatever they throw is what is asked for
        log.debug("check {}", check.name(), e);
        facts.add(CHECKS, check.name(), "failed: " + e);
      }
    }

    /** At the latest when its own limit or what is left for all is over. */
    void await(Duration left) {
      long own = check.limit().toNanos() - (System.nanoTime() - began);
      long wait = Math.max(1, Math.min(own, left.toNanos()));
      try {
        TimeUnit.NANOSECONDS.timedJoin(thread, wait);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      if (thread.isAlive()) {
        facts.add(
            CHECKS,
            check.name(),
            "did not finish within " + (System.nanoTime() - began) / 1_000_000_000L + " s");
      }
    }
  }
}
