package org.gradientsync.tools.perf;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;

/** An all-reduce at one size. */
class PerfCase extends TimedCase {
  private final ReduceOp op;
  private final PerfNumbers numbers;
  private final DeviceBuffer memory;
  private final Stream[] streams; // when overlapping, two that alternate; otherwise none
  private final DeviceBuffer gradients;
  private final DeviceBuffer byTurns; // the same memory on the other stream, or null
  private final DeviceBuffer[] source; // as the device's reduce takes it; null if in place
  private boolean odd;

  /**
   * Creates a case.
   *
   * @param wire the type in which FLOAT32 elements travel, or null
   * @param beside whether to leave room for other work on a GPU
   * @param asGraph whether to capture several into a CUDA graph
   */
  PerfCase(
      GradientSync sync,
      DataType type,
      ReduceOp op,
      DataType wire,
      long count,
      boolean inPlace,
      boolean beside,
      boolean asGraph) {
    super(sync, asGraph);
    this.op = op;
    numbers = new PerfNumbers(type, op, sync.size(), wire);
    BackendDevice device = (BackendDevice) sync.device();
    memory = sync.allocate(type, count);
    streams = new Stream[beside ? 2 : 0];
    for (int i = 0; i < streams.length; i++) {
      streams[i] = device.createStream(true);
    }
    device.await(memory);
    gradients = beside ? device.on(streams[0], memory) : memory;
    byTurns = beside ? device.on(streams[1], memory) : null;
    source = inPlace ? null : new DeviceBuffer[] {sync.allocate(type, count)};
    measureOn(gradients);
    numbers.fill(inPlace ? gradients : source[0], sync.rank());
  }

  /** Reduces, after a copy unless it is in place. */
  @Override
  void enqueue() {
    if (source != null) { // on any device, reducing a single buffer copies it
      ((BackendDevice) sync.device()).reduce(source, gradients, ReduceOp.SUM);
    }
    sync.allReduce(gradients, op);
  }

  /** As {@link #hostCall}: alternating between the streams if it overlaps in place. */
  @Override
  Runnable warmUpCall() {
    return takesTurns() ? this::reduceByTurns : this::enqueue;
  }

  private boolean takesTurns() {
    return byTurns != null && source == null;
  }

  private void reduceByTurns() {
    odd = !odd;
    sync.allReduce(odd ? byTurns : gradients, op);
  }

  @Override
  void await() {
    super.await();
    for (Stream stream : streams) {
      stream.await();
    }
  }

  /**
   * Overlapping calls in place that are not in a graph alternate between two streams, as those of
   * gradient buckets do.
   */
  @Override
  Runnable hostCall() {
    return takesTurns() && !isGraph() ? this::reduceByTurns : this::call;
  }

  @Override
  void refill() {
    if (source == null) {
      numbers.fill(gradients, sync.rank());
    }
  }

  @Override
  long wrongHere() {
    return numbers.wrong(gradients, source == null ? inOneCall() : 1);
  }

  @Override
  public void close() {
    super.close();
    if (source != null) {
      source[0].close();
    }
    memory.close();
    for (Stream stream : streams) {
      stream.close();
    }
  }
}
