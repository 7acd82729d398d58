package org.gradientsync.tools.doctor;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Keeps the time limits of each check and of the program. */
final class Clock {
  /** The section for checks that failed or did not finish. */
  static final String CHECKS = "Checks";

  /** The name in that section for the program as a whole. */
  static final String ITSELF = "doctor itself";

  private static final Logger log = LoggerFactory.getLogger(Clock.class);

  private final long start;
  private final Duration all;

  /**
   * Creates a clock that has already run for some time.
   *
   * @param all the total time, including the time already used
   */
  Clock(Duration all, Duration used) {
    this.all = all;
    start = System.nanoTime() - used.toNanos();
  }

  /** Returns the time left until a fraction of the total; never negative. */
  Duration until(double part) {
    long left = (long) (all.toNanos() * part) - (System.nanoTime() - start);
    return Duration.ofNanos(Math.max(0, left));
  }

  /**
   * Runs checks in parallel, each on a daemon thread. A check that throws or does not finish
   * becomes a fact, too.
   *
   * @param part the fraction of the total time at which all of them are given up
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

  /** Runs {@code ending} when the time is over, whatever the other threads do. */
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
      } catch (Throwable e) { // checks load natives, and whatever they throw is a result
        log.debug("check {}", check.name(), e);
        facts.add(CHECKS, check.name(), "failed: " + e);
      }
    }

    void await(Duration left) {
      try {
        TimeUnit.NANOSECONDS.timedJoin(thread, Math.max(1, left.toNanos()));
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
