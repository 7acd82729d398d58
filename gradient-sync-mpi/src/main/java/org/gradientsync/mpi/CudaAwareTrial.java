package org.gradientsync.mpi;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * A small all-reduce of device memory that tests whether MPI supports it between these ranks. It
 * has its own group, because a failed call breaks its group and the ranks must be able to continue.
 *
 * <p>The steps do not throw. Each one returns its failure, so that the ranks can agree on the
 * result before the next step.
 */
final class CudaAwareTrial implements AutoCloseable {
  private static final int COUNT = 1000;

  private final ProcessGroup group;
  private final int[] values = new int[COUNT];
  private DeviceBuffer buffer;

  /** Creates the trial's group. Collective in the given group. */
  CudaAwareTrial(RankGroup ranks) {
    group = ProcessGroup.of(ranks).split(0, ranks.rank(), ranks.timeouts());
  }

  RankGroup group() {
    return group;
  }

  /** Allocates device memory. Returns the failure, or an empty text. */
  String prepare(BackendDevice device) {
    for (int i = 0; i < COUNT; i++) {
      values[i] = group.rank() + i;
    }
    return failureOf(
        () -> {
          buffer = Unclosed.exempt(device.allocate(DataType.INT32, COUNT));
          buffer.copyFrom(values);
        });
  }

  /** Reduces, once all ranks are prepared. Returns the failure, or an empty text. */
  String run(Reducer reducer) {
    String failure =
        failureOf(
            () -> {
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.MAX));
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
