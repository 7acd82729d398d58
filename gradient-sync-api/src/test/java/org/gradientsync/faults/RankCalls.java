package org.gradientsync.faults;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.faults.Fault.Kind;
import org.gradientsync.faults.Fault.Verdict;

/** Counts what one rank does, and lets the planned faults strike. */
final class RankCalls {
  private final int rank;
  private final List<Fault> planned;
  private final boolean process;
  private final AtomicInteger calls = new AtomicInteger();
  private final AtomicInteger copies = new AtomicInteger();

  /**
   * Counts from 0.
   *
   * @param planned all faults of the test, also those that are planned later
   * @param process whether the rank is a process of its own
   */
  RankCalls(int rank, List<Fault> planned, boolean process) {
    this.rank = rank;
    this.planned = planned;
    this.process = process;
  }

  boolean isProcess() {
    return process;
  }

  /** The next collective call. */
  Verdict call() {
    return strike(Kind.CALL, calls.incrementAndGet());
  }

  /** The next copy. */
  void copy() {
    strike(Kind.COPY, copies.incrementAndGet());
  }

  private Verdict strike(Kind kind, int number) {
    Verdict verdict = Verdict.MAKE;
    for (Fault fault : planned) {
      if (fault.isAt(rank, kind, number)) {
        Verdict own = fault.strike(this);
        verdict = own == Verdict.MAKE ? verdict : own; // late, and then something else
      }
    }
    return verdict;
  }

  Verdict sleep(Duration delay) {
    try {
      Thread.sleep(delay.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // the call will notice
    }
    return Verdict.MAKE;
  }

  Verdict die() {
    if (process) {
      RankProcess.kill();
    }
    throw new RankDiedError("rank " + rank + " died, as a test has planned");
  }

  String made() {
    return " (the rank made " + calls.get() + " calls and " + copies.get() + " copies)";
  }
}
