package org.gradientsync.test.faults;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.test.faults.Fault.Kind;
import org.gradientsync.test.faults.Fault.Verdict;

/** Counts the calls of one rank, and injects the planned faults. */
final class RankCalls implements CallInterceptor {
  private final int rank;
  private final List<Fault> planned;
  private final boolean process;
  private final AtomicInteger calls = new AtomicInteger();
  private final AtomicInteger copies = new AtomicInteger();

  /**
   * Starts both counts at 0.
   *
   * @param planned all faults of the test, including those planned later
   * @param process whether the rank has its own process
   */
  RankCalls(int rank, List<Fault> planned, boolean process) {
    this.rank = rank;
    this.planned = planned;
    this.process = process;
  }

  boolean isProcess() {
    return process;
  }

  /** Counts a collective call. */
  Verdict call() {
    return strike(Kind.CALL, calls.incrementAndGet());
  }

  @Override
  public DeviceBuffer beforeCall(DeviceBuffer buffer) {
    return switch (call()) {
      case MAKE -> buffer;
      case MISMATCH -> oneLess(buffer);
      case DROP -> null; // the others wait for this rank, or meet its next call
    };
  }

  /**
   * Returns a view without the last element. Nobody has to close it: it takes no memory, and is
   * closed with the buffer.
   */
  private static DeviceBuffer oneLess(DeviceBuffer buffer) {
    if (buffer.count() == 0) {
      throw nothingLess(buffer);
    }
    return buffer.slice(0, ((AbstractDeviceBuffer) buffer).usedCount() - 1);
  }

  static IllegalStateException nothingLess(Object buffer) {
    return new IllegalStateException(
        "an empty buffer has no other count to ask for: buffer="
            + buffer
            + "; plan the mismatch at another call");
  }

  @Override
  public void beforeCopy() {
    strike(Kind.COPY, copies.incrementAndGet());
  }

  @Override
  public Communicator around(Communicator communicator, Runnable turn) {
    return new FaultyCommunicator(communicator, turn, this);
  }

  private Verdict strike(Kind kind, int number) {
    Verdict verdict = Verdict.MAKE;
    for (Fault fault : planned) {
      if (fault.isAt(rank, kind, number)) {
        Verdict own = fault.strike(this);
        verdict = own == Verdict.MAKE ? verdict : own; // a delay may come with another fault
      }
    }
    return verdict;
  }

  Verdict sleep(Duration delay) {
    try {
      Thread.sleep(delay.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // the call notices the interrupt
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
