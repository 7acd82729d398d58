package org.gradientsync.tools.perf;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;

/**
 * A collective at one size, as {@link PerfProgram} measures it: single ones, or a CUDA graph of
 * several. All methods are collective.
 */
abstract class TimedCase implements AutoCloseable {
  private static final int HOST_CALLS = 100; // few enough to fit into a GPU's queue

  /** The number of collectives in a graph. */
  static final int IN_GRAPH = 10;

  final GradientSync sync;
  private final boolean asGraph;
  private PerfClock clock;
  private CudaStream stream; // that of the graph
  private CudaGraph graph;

  /**
   * Creates a case.
   *
   * @param asGraph whether {@link #capture} captures
   */
  TimedCase(GradientSync sync, boolean asGraph) {
    this.sync = sync;
    this.asGraph = asGraph;
  }

  /** Takes the time, and captures, where a buffer is. */
  final void measureOn(DeviceBuffer buffer) {
    clock = PerfClock.of(buffer);
    stream = asGraph ? ((CudaBuffer) buffer).stream() : null;
  }

  /** Enqueues one collective. */
  abstract void enqueue();

  /** Makes one call: a collective, or a graph of several. */
  final void call() {
    if (graph == null) {
      enqueue();
    } else {
      graph.launch(stream);
    }
  }

  final boolean isGraph() {
    return graph != null;
  }

  /** Writes new numbers, if the calls so far have changed what this rank gives. */
  abstract void refill();

  /** Counts the elements that are wrong on this rank after {@link #refill} and a call. */
  abstract long wrongHere();

  /** Returns the number of collectives in a call. */
  final int inOneCall() {
    return graph == null ? 1 : IN_GRAPH;
  }

  /**
   * From now on runs a graph in each call, if that was asked for. The collective must have been
   * enqueued before.
   */
  final void capture() {
    if (!asGraph) {
      return;
    }
    sync.barrier();
    stream.beginCapture();
    try {
      for (int i = 0; i < IN_GRAPH; i++) {
        enqueue();
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
    sync.barrier(); // on a shared GPU, making the graph may wait for another rank's kernel
    call();
    clock.await();
  }

  /** Returns what to call in order to warm up. */
  Runnable warmUpCall() {
    return this::call;
  }

  /** Returns what to call in order to check. */
  Runnable checkedCall() {
    return this::call;
  }

  /** Returns what to call in order to measure the host's cost. */
  Runnable hostCall() {
    return this::call;
  }

  /** Waits until all work is done. */
  void await() {
    clock.await();
  }

  final void warmUp(int times) {
    Runnable call = warmUpCall();
    for (int i = 0; i < times; i++) {
      call.run();
    }
    await();
  }

  private int calls(int collectives) {
    return (collectives + inOneCall() - 1) / inOneCall();
  }

  /** Makes collectives in a row, and returns the microseconds for each: the mean over the ranks. */
  final double round(int collectives) {
    int calls = calls(collectives);
    clock.await();
    sync.barrier();
    double time =
        clock.microseconds(
            () -> {
              for (int i = 0; i < calls; i++) {
                call();
              }
            });
    return mean(time / calls / inOneCall());
  }

  /**
   * Returns what a collective costs the calling thread, without waiting for a GPU; means over the
   * ranks.
   */
  final HostCost hostCost(int collectives) {
    int calls = Math.min(HOST_CALLS, calls(collectives));
    Runnable call = hostCall();
    await();
    sync.barrier();
    HostCost own = HostCost.of(calls, call).dividedBy(inOneCall());
    await();
    return new HostCost(mean(own.cpuNanos()), mean(own.wallNanos()), mean(own.bytes()));
  }

  /** Makes a call on new numbers, and counts the wrong elements on all ranks. */
  final long wrong() {
    clock.await();
    refill();
    checkedCall().run();
    long[] wrong = {wrongHere()};
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
  }
}
