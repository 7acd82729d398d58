package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.spi.BackendDevice;

/**
 * A reducer at one size, as {@link AllReducePerf} measures it: single reductions, or a CUDA graph
 * of several. All methods are collective.
 */
class PerfCase implements AutoCloseable {
  /** The number of reductions in a graph. */
  static final int IN_GRAPH = 10;

  private static final int HOST_CALLS = 100; // few enough to fit into a GPU's queue

  private final GradientSync sync;
  private final ReduceOp op;
  private final PerfNumbers numbers;
  private final DeviceBuffer memory;
  private final Stream[] streams; // when overlapping, two that alternate; otherwise none
  private final DeviceBuffer gradients;
  private final DeviceBuffer byTurns; // the same memory on the other stream, or null
  private final DeviceBuffer[] source; // as the device's reduce takes it; null if in place
  private final PerfClock clock;
  private CudaGraph graph;
  private boolean odd;

  /**
   * Creates a case.
   *
   * @param wire the type in which FLOAT32 elements travel, or null
   * @param beside whether to leave room for other work on a GPU
   */
  PerfCase(
      GradientSync sync,
      DataType type,
      ReduceOp op,
      DataType wire,
      long count,
      boolean inPlace,
      boolean beside) {
    this.sync = sync;
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
    clock = PerfClock.of(gradients);
    numbers.fill(inPlace ? gradients : source[0], sync.rank());
  }

  /** Reduces, after a copy unless it is in place. */
  void reduce() {
    if (source != null) { // on any device, reducing a single buffer copies it
      ((BackendDevice) sync.device()).reduce(source, gradients, ReduceOp.SUM);
    }
    sync.allReduce(gradients, op);
  }

  /**
   * Warms up as {@link #hostCost} calls: alternating between the streams if it overlaps in place.
   */
  void warmUp(int times) {
    Runnable reduction = takesTurns() ? this::reduceByTurns : this::reduce;
    for (int i = 0; i < times; i++) {
      reduction.run();
    }
    await();
  }

  private boolean takesTurns() {
    return byTurns != null && source == null;
  }

  private void reduceByTurns() {
    odd = !odd;
    sync.allReduce(odd ? byTurns : gradients, op);
  }

  private void await() {
    clock.await();
    for (Stream stream : streams) {
      stream.await();
    }
  }

  /** From now on runs a graph in each call. The buffers must have been reduced before. */
  void capture() {
    CudaStream stream = ((CudaBuffer) gradients).stream();
    sync.barrier();
    stream.beginCapture();
    try {
      for (int i = 0; i < IN_GRAPH; i++) {
        reduce();
      }
    } catch (RuntimeException e) {
      try {
        stream.endCapture().close();
      } catch (RuntimeException consequence) {
        e.addSuppressed(consequence);
      }
      throw e;
    }
    graph = stream.endCapture();
    call();
    clock.await();
  }

  private void call() {
    if (graph == null) {
      reduce();
    } else {
      graph.launch(((CudaBuffer) gradients).stream());
    }
  }

  private int reductionsPerCall() {
    return graph == null ? 1 : IN_GRAPH;
  }

  private int calls(int reductions) {
    return (reductions + reductionsPerCall() - 1) / reductionsPerCall();
  }

  /** Makes reductions in a row, and returns the microseconds for each: the mean over the ranks. */
  double round(int reductions) {
    int calls = calls(reductions);
    clock.await();
    sync.barrier();
    double time =
        clock.microseconds(
            () -> {
              for (int i = 0; i < calls; i++) {
                call();
              }
            });
    return mean(time / calls / reductionsPerCall());
  }

  /**
   * Returns what a reduction costs the calling thread, without waiting for a GPU; means over the
   * ranks. Overlapping calls in place that are not in a graph alternate between two streams, as
   * those of gradient buckets do.
   */
  HostCost hostCost(int reductions) {
    int calls = Math.min(HOST_CALLS, calls(reductions));
    Runnable call = takesTurns() && graph == null ? this::reduceByTurns : this::call;
    await();
    sync.barrier();
    HostCost own = HostCost.of(calls, call).dividedBy(reductionsPerCall());
    await();
    return new HostCost(mean(own.cpuNanos()), mean(own.wallNanos()), mean(own.bytes()));
  }

  /** Reduces new numbers, and counts the wrong elements on all ranks. */
  long wrong() {
    clock.await();
    if (source == null) {
      numbers.fill(gradients, sync.rank());
    }
    call();
    long[] wrong = {numbers.wrong(gradients, source == null ? reductionsPerCall() : 1)};
    sync.communicator().allReduce(LongBuffer.wrap(wrong), ReduceOp.SUM);
    return wrong[0];
  }

  private double mean(double own) {
    double[] sum = {own};
    sync.communicator().allReduce(DoubleBuffer.wrap(sum), ReduceOp.SUM);
    return sum[0] / sync.size();
  }

  @Override
  public void close() {
    clock.await();
    if (graph != null) {
      graph.close();
    }
    clock.close();
    if (source != null) {
      source[0].close();
    }
    memory.close();
    for (Stream stream : streams) {
      stream.close();
    }
  }
}
