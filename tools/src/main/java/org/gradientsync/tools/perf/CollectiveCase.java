package org.gradientsync.tools.perf;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.BackendDevice;

/** Any collective but all-reduce, at one size. */
class CollectiveCase extends TimedCase {
  private final PerfCollective collective;
  private final ReduceOp op;
  private final long count;
  private final PerfNumbers numbers;
  private final DeviceBuffer larger; // of the two buffers, or the only one
  private final DeviceBuffer smaller; // may be a part of the larger one
  private final DeviceBuffer in;
  private final DeviceBuffer out;
  private final boolean inPlace;

  /**
   * Creates a case.
   *
   * @param count the elements of a part, as {@link PerfCollective#count} gives it
   * @param asGraph whether to capture several into a CUDA graph
   */
  CollectiveCase(
      GradientSync sync,
      PerfCollective collective,
      DataType type,
      ReduceOp op,
      long count,
      boolean inPlace,
      boolean asGraph) {
    super(sync, asGraph);
    this.inPlace = inPlace;
    this.collective = collective;
    this.op = op;
    this.count = count;
    numbers = new PerfNumbers(type, op, sync.size());
    int inputParts = collective.inputParts(sync.size());
    int outputParts = collective.outputParts(sync.size());
    larger = sync.allocate(type, count * Math.max(inputParts, outputParts));
    smaller =
        !inPlace
            ? sync.allocate(type, count * Math.min(inputParts, outputParts))
            : inputParts == outputParts ? larger : larger.slice(sync.rank() * count, count);
    in = inputParts > outputParts ? larger : smaller;
    out = inputParts > outputParts ? smaller : larger;
    measureOn(out);
    refill();
  }

  @Override
  void enqueue() {
    switch (collective) {
      case ALL_GATHER -> sync.allGather(in, out);
      case REDUCE_SCATTER -> sync.reduceScatter(in, out, op);
      case ALL_TO_ALL -> sync.allToAll(in, out);
      case BROADCAST -> {
        copyOnRoot();
        sync.broadcast(out, PerfCollective.ROOT);
      }
      case REDUCE -> {
        copyOnRoot();
        sync.reduce(isRoot() ? out : in, op, PerfCollective.ROOT);
      }
      case SEND_RECEIVE -> passOn();
      case ALL_REDUCE -> throw new IllegalStateException("PerfCase measures it");
    }
  }

  /**
   * One alone where a graph would reduce what it has reduced before, together with what it has not.
   */
  @Override
  Runnable checkedCall() {
    return inPlace && collective.reduces() ? this::enqueue : super.checkedCall();
  }

  private boolean isRoot() {
    return sync.rank() == PerfCollective.ROOT;
  }

  /** For out-of-place: the library broadcasts and reduces in place. */
  private void copyOnRoot() {
    if (isRoot() && in != out) {
      ((BackendDevice) sync.device()).copy(in, out);
    }
  }

  /** Sends to the next rank. A send may wait for its receiver, so ranks take turns. */
  private void passOn() {
    int next = (sync.rank() + 1) % sync.size();
    if (sync.rank() % 2 == 0) {
      sync.send(in, next);
      sync.receive(out, previous());
    } else {
      sync.receive(out, previous());
      sync.send(in, next);
    }
  }

  private int previous() {
    return (sync.rank() + sync.size() - 1) % sync.size();
  }

  @Override
  void refill() {
    numbers.fill(out, sync.size()); // no rank's numbers, which a call that does nothing would leave
    numbers.fill(in, sync.rank());
  }

  @Override
  long wrongHere() {
    if (collective == PerfCollective.REDUCE && !isRoot()) {
      return numbers.wrong(in, index -> numbers.bits(sync.rank(), index)); // it must not change
    }
    return numbers.wrong(out, this::expected);
  }

  private long expected(long index) {
    long first = sync.rank() * count;
    int part = (int) (index / count);
    return switch (collective) {
      case ALL_GATHER -> numbers.bits(part, index % count);
      case ALL_TO_ALL -> numbers.bits(part, first + index % count);
      case REDUCE_SCATTER -> numbers.reduced(first + index, 1);
      case ALL_REDUCE, REDUCE -> numbers.reduced(index, 1);
      case BROADCAST -> numbers.bits(PerfCollective.ROOT, index);
      case SEND_RECEIVE -> numbers.bits(previous(), index);
    };
  }

  @Override
  public void close() {
    super.close();
    if (smaller != larger) {
      smaller.close();
    }
    larger.close();
  }
}
