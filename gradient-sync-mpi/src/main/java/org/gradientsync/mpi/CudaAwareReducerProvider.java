package org.gradientsync.mpi;

import java.util.function.Supplier;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.collective.Agreement;
import org.gradientsync.collective.GroupCommunicator;
import org.gradientsync.collective.NodeMeeting;
import org.gradientsync.collective.PointToPointReducer;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/**
 * Offers {@code cuda-aware}: device memory handed to MPI point-to-point, added up on the GPU. Only
 * with an MPI that says that it takes device memory, has shown it in a process of its own, and then
 * between these ranks.
 */
public final class CudaAwareReducerProvider implements ReducerProvider {
  private static final int CHUNK_BYTES = 4 << 20; // below it MPI's own cost for each message shows
  private static final int TRIAL = 1000;

  private final Supplier<Availability> mpi; // whether it takes device memory

  /** For the service loader. */
  public CudaAwareReducerProvider() {
    this(CudaAwareness::ask);
  }

  /** For tests: an MPI that says what they like. */
  CudaAwareReducerProvider(Supplier<Availability> mpi) {
    this.mpi = mpi;
  }

  @Override
  public String name() {
    return "cuda-aware";
  }

  @Override
  public int priority() {
    return 350;
  }

  @Override
  public Availability availability(SyncContext context) {
    String kind = context.device().kind();
    if (!kind.equals("cuda")) {
      return Availability.no("the gradients are not in GPU memory: device=" + kind);
    }
    if (!context.group().transport().name().equals(MpiLauncher.NAME)) {
      return Availability.no(
          "the ranks were not started by mpirun: launcher=" + context.group().transport().name());
    }
    return mpi.get();
  }

  @Override
  public Reducer create(SyncContext context) {
    GroupCommunicator communicator = new GroupCommunicator(context.group());
    boolean first = communicator.rank() == 0;
    Availability probe = first ? CudaAwareProbe.run(communicator.timeout()) : Availability.yes();
    agree(communicator, probe.reason());
    NodeMeeting.begin(context.group(), context.settings(), false);
    Reducer reducer =
        new PointToPointReducer(name(), context.group(), context.device(), CHUNK_BYTES);
    try {
      agree(communicator, tryOut(reducer, context));
    } catch (UnavailableException e) {
      reducer.close();
      throw e;
    }
    // MPI unmaps the other GPUs' memory at its end, and needs a GPU's context for that.
    JobEnd.prepareWith(context.device()::makeCurrent);
    return reducer;
  }

  /** Throws on all ranks if one has a failure to report. */
  private static void agree(GroupCommunicator communicator, String failure) {
    Agreement.requireAll(
        communicator, failure.isEmpty() ? "" : "a trial with device memory failed: " + failure);
  }

  private static String tryOut(Reducer reducer, SyncContext context) {
    int[] values = new int[TRIAL];
    for (int i = 0; i < TRIAL; i++) {
      values[i] = context.group().rank() + i;
    }
    try (DeviceBuffer buffer = context.device().allocate(DataType.INT32, TRIAL)) {
      buffer.copyFrom(values);
      reducer.allReduce(buffer, ReduceOp.MAX);
      buffer.copyTo(values);
    } catch (GradientSyncException e) {
      return e.getMessage();
    }
    for (int i = 0; i < TRIAL; i++) {
      if (values[i] != context.group().size() - 1 + i) {
        return "wrong values came back";
      }
    }
    return "";
  }
}
