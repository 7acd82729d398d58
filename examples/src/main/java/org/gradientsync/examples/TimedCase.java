package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** A collective at one size, as {@link PerfProgram} measures it. All methods are collective. */
abstract class TimedCase implements AutoCloseable {
  private static final int HOST_CALLS = 100; // few enough to fit into a GPU's queue

  final GradientSync sync;
  private PerfClock clock;

  TimedCase(GradientSync sync) {
    this.sync = sync;
  }

  /** Sets the clock, once there is a buffer. */
  final void use(PerfClock newClock) {
    clock = newClock;
  }

  /** Makes one call: a collective, or a graph of several. */
  abstract void call();

  /** Writes new numbers, if the calls so far have changed what this rank gives. */
  abstract void refill();

  /** Counts the elements that are wrong on this rank after {@link #refill} and a call. */
  abstract long wrongHere();

  /** Returns the number of collectives in a call. */
  int inOneCall() {
    return 1;
  }

  /** From now on launches as few things as possible; by default there is nothing to save. */
  void capture() {
    // each call is launched by itself
  }

  /** Returns what to call in order to warm up. */
  Runnable warmUpCall() {
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
    call();
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
    clock.close();
  }
}
