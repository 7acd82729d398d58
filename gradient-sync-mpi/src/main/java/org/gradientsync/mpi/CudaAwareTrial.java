package org.gradientsync.mpi;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * A small all-reduce of device memory between ranks that do not know yet whether it works. In a
 * group of its own: a call that fails breaks its group, and the ranks are to go on.
 *
 * <p>Nothing that fails is thrown. Each step says what has failed, for the ranks to agree on before
 * they go on to the next.
 */
final class CudaAwareTrial implements AutoCloseable {
  private static final int COUNT = 1000;

  private final ProcessGroup group;
  private final int[] values = new int[COUNT];
  private DeviceBuffer buffer;

  /** Collective, by the ranks' usual group. */
  CudaAwareTrial(RankGroup ranks) {
    group = ProcessGroup.of(ranks).split(0, ranks.rank(), ranks.timeouts());
  }

  RankGroup group() {
    return group;
  }

  /** Takes device memory; returns what went wrong, or an empty text. */
  String prepare(BackendDevice device) {
    for (int i = 0; i < COUNT; i++) {
      values[i] = group.rank() + i;
    }
    return failureOf(
        () -> {
          buffer = device.allocate(DataType.INT32, COUNT);
          buffer.copyFrom(values);
        });
  }

  /** Reduces, if all ranks are prepared; returns what went wrong, or an empty text. */
  String run(Reducer reducer) {
    String failure =
        failureOf(
            () -> {
              reducer.allReduce(buffer, ReduceOp.MAX);
              buffer.copyTo(values);
            });
    boolean right = true;
    for (int i = 0; i < COUNT; i++) {
      right &= values[i] == group.size() - 1 + i;
    }
    return failure.isEmpty() && !right ? "wrong values came back" : failure;
  }

  private static String failureOf(Runnable step) {
    try {
      step.run();
      return "";
    } catch (RuntimeException | LinkageError | OutOfMemoryError e) {
      return e instanceof GradientSyncException ? e.getMessage() : e.toString();
    }
  }

  @Override
  public void close() {
    Resources.closeAll(buffer, group);
  }
}
