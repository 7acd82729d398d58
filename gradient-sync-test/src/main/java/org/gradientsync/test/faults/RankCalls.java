package org.gradientsync.test.faults;

import java.nio.Buffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.HostCall;
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
    return strike(Fault.Kind.CALL, calls.incrementAndGet());
  }

  @Override
  public CollectiveCall beforeCall(CollectiveCall call, int ranks) {
    return switch (call()) {
      case MAKE -> call;
      case MISMATCH -> oneLess(call, ranks);
      case DROP -> null; // the others wait for this rank, or meet its next call
    };
  }

  /**
   * Returns a call of one element less in each block. Nobody has to close its views: they take no
   * memory, and are closed with the buffers.
   */
  private CollectiveCall oneLess(CollectiveCall call, int ranks) {
    if (call instanceof HostCall host) {
      return oneLess(host, ranks);
    }
    if (call.hasCounts()) {
      return oneLessOfLast(call);
    }
    boolean oneBuffer = call.in() == call.out();
    long count =
        (oneBuffer ? ((AbstractDeviceBuffer) call.in()).usedCount() : call.blockCount(ranks)) - 1;
    if (count < 0) {
      throw nothingLess(call.buffer());
    }
    long inputCount = count * call.kind().inputBlocks(ranks);
    long outputCount = count * call.kind().outputBlocks(ranks);
    DeviceBuffer in = call.in() == null ? null : call.in().slice(0, inputCount);
    DeviceBuffer out =
        oneBuffer ? in : call.out() == null ? null : call.out().slice(0, outputCount);
    if (isInPlace(call) && inputCount > outputCount) {
      out = in.slice(rank * count, count);
    } else if (isInPlace(call) && outputCount > inputCount) {
      in = out.slice(rank * count, count);
    }
    return new CollectiveCall(call.kind(), in, out, call.op(), call.root());
  }

  private static CollectiveCall oneLess(HostCall call, int ranks) {
    int root = call.root();
    if (call.hostBuffer() == null) { // a barrier
      return new HostCall(Kind.BROADCAST, IntBuffer.allocate(1), IntBuffer.allocate(1), 0);
    }
    if (call.blockCount(ranks) == 0) {
      throw nothingLess(call.hostBuffer());
    }
    Buffer in = less(call.hostIn(), call.kind().inputBlocks(ranks));
    Buffer out = less(call.hostOut(), call.kind().outputBlocks(ranks));
    return new HostCall(call.kind(), in, out, root);
  }

  /** All but the last elements. */
  private static Buffer less(Buffer data, int elements) {
    return data == null ? null : data.slice(data.position(), data.remaining() - elements);
  }

  /** As above, of one element less in the last block that has any. */
  private CollectiveCall oneLessOfLast(CollectiveCall call) {
    CollectiveCall less = call.copy();
    long[] counts = less.outCounts() != null ? less.outCounts() : less.inCounts();
    int last = counts.length - 1;
    while (last >= 0 && counts[last] == 0) {
      last--;
    }
    if (last < 0) {
      throw nothingLess(call.buffer());
    }
    counts[last]--;
    boolean ofOut = counts == less.outCounts();
    boolean own = last == rank && less.kind() != Kind.ALL_TO_ALL;
    DeviceBuffer in = call.in();
    DeviceBuffer out = call.out();
    if (in != null && (own || !ofOut)) {
      in = in.slice(0, in.count() - 1);
    }
    if (out != null && (own || ofOut)) {
      out = out.slice(0, out.count() - 1);
    }
    return new CollectiveCall(less.kind(), in, out, less.op(), less.root())
        .counts(less.inCounts(), less.outCounts());
  }

  /** Whether one buffer is this rank's block of the other one. */
  private static boolean isInPlace(CollectiveCall call) {
    return call.in() != null
        && call.out() != null
        && ((AbstractDeviceBuffer) call.in()).overlaps((AbstractDeviceBuffer) call.out());
  }

  static IllegalStateException nothingLess(Object buffer) {
    return new IllegalStateException(
        "an empty buffer has no other count to ask for: buffer="
            + buffer
            + "; plan the mismatch at another call");
  }

  @Override
  public void beforeCopy() {
    strike(Fault.Kind.COPY, copies.incrementAndGet());
  }

  private Verdict strike(Fault.Kind kind, int number) {
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
