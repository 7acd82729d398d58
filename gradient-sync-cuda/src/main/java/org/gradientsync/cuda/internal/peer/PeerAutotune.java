package org.gradientsync.cuda.internal.peer;

import java.nio.DoubleBuffer;
import java.util.Arrays;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuEvent;
import org.gradientsync.cuda.internal.driver.GpuStream;

/**
 * Measures up to which size each algorithm is the fastest on this machine with this number of
 * ranks. All ranks measure together and get the same result.
 */
final class PeerAutotune {
  private static final int PER_ROUND = 10;
  private static final int ROUNDS = 5;

  private final Gpu gpu;
  private final Communicator communicator;
  private final PeerPlanner planner;
  private final PeerOrder order;
  private final PeerRegistration buffer;

  /**
   * @param buffer a FLOAT32 buffer of the largest size that two_shot takes, registered and mapped
   */
  PeerAutotune(
      Gpu gpu,
      Communicator communicator,
      PeerPlanner planner,
      PeerOrder order,
      PeerRegistration buffer) {
    this.gpu = gpu;
    this.communicator = communicator;
    this.planner = planner;
    this.order = order;
    this.buffer = buffer;
  }

  /** Returns the largest sizes for one_shot and for two_shot, in bytes. */
  long[] measure(PeerLayout layout) {
    long oneShot = 32 << 10;
    while (2 * oneShot <= layout.mostBytes(PeerAlgorithm.ONE_SHOT)
        && isFaster(PeerAlgorithm.ONE_SHOT, PeerAlgorithm.TWO_SHOT, 2 * oneShot)) {
      oneShot *= 2;
    }
    long twoShot = Math.max(1 << 20, oneShot);
    while (2 * twoShot <= layout.mostBytes(PeerAlgorithm.TWO_SHOT)
        && isFaster(PeerAlgorithm.TWO_SHOT, PeerAlgorithm.STREAM, 2 * twoShot)) {
      twoShot *= 2;
    }
    // The crossover lies between this size and the next one measured.
    oneShot = oneShot * 5 / 4;
    return new long[] {oneShot, Math.max(oneShot, twoShot)};
  }

  private boolean isFaster(PeerAlgorithm algorithm, PeerAlgorithm other, long bytes) {
    PeerRegistration registration =
        new PeerRegistration(
            buffer.number,
            buffer.type,
            elements(bytes),
            false,
            buffer.addresses,
            buffer.mapped,
            null,
            null);
    return milliseconds(registration, algorithm) <= milliseconds(registration, other);
  }

  private double milliseconds(PeerRegistration registration, PeerAlgorithm algorithm) {
    double[] rounds = new double[ROUNDS];
    int tag = PeerTag.of(registration.number, ReduceOp.SUM);
    try (PeerPlan plan = planner.plan(registration, algorithm, ReduceOp.SUM, tag);
        GpuStream stream = GpuStream.create(gpu);
        GpuEvent start = GpuEvent.create(gpu, true);
        GpuEvent end = GpuEvent.create(gpu, true)) {
      communicator.barrier(); // creating these may block on kernels of another rank on this GPU
      order.beginEnqueuing();
      plan.enqueue(stream.handle());
      stream.await();
      for (int round = 0; round < ROUNDS; round++) {
        plan.enqueue(stream.handle()); // lines the ranks up: they wait for each other in it
        stream.record(start);
        for (int i = 0; i < PER_ROUND; i++) {
          plan.enqueue(stream.handle());
        }
        stream.record(end);
        stream.await();
        rounds[round] = start.millisecondsTo(end);
      }
    } finally {
      order.endEnqueuing();
    }
    Arrays.sort(rounds);
    double[] slowest = {rounds[ROUNDS / 2]};
    communicator.allReduce(DoubleBuffer.wrap(slowest), ReduceOp.MAX);
    return slowest[0];
  }

  /** The number of FLOAT32 elements in so many bytes. */
  static long elements(long bytes) {
    return bytes / DataType.FLOAT32.sizeInBytes();
  }
}
