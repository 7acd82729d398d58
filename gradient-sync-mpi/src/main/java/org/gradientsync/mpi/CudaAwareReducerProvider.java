package org.gradientsync.mpi;

import java.time.Duration;
import java.util.function.Function;
import java.util.function.Supplier;
import org.gradientsync.Communicator;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.mpi.binding.MpiJob;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/**
 * Provides {@code cuda-aware}, which passes device memory to MPI point-to-point calls and adds on
 * the GPU. The MPI must report support for device memory and prove it, first in a child process and
 * then between these ranks.
 */
public final class CudaAwareReducerProvider implements ReducerProvider {
  private static final int CHUNK_BYTES = 4 << 20; // with less, MPI's cost per message shows

  private final Supplier<Availability> mpi; // MPI's report of support for device memory
  private final Function<Duration, Availability> process; // the proof in a child process

  /** For the service loader. */
  public CudaAwareReducerProvider() {
    this(CudaAwareness::ask, CudaAwareProbe::run);
  }

  /** For tests, which replace MPI's report and the child process. */
  CudaAwareReducerProvider(Supplier<Availability> mpi, Function<Duration, Availability> process) {
    this.mpi = mpi;
    this.process = process;
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
    RankGroup group = context.group();
    Communicator communicator = context.communicator();
    boolean first = group.rank() == 0;
    agree(communicator, first ? process.apply(group.timeouts().timeout()).reason() : "");
    try (CudaAwareTrial trial = new CudaAwareTrial(group);
        Reducer reducer = reducer(context, trial.group())) {
      agree(communicator, trial.prepare(context.device()));
      agree(communicator, trial.run(reducer));
    }
    // MPI_Finalize unmaps the other GPUs' memory and needs a GPU's context for that.
    MpiJob.beforeFinalize(context.device()::makeCurrent);
    return reducer(context, group);
  }

  private Reducer reducer(SyncContext context, RankGroup group) {
    SyncContext overGroup =
        new SyncContext(
            group, context.communicator(), context.device(), context.settings(), context.parts());
    return context.parts().overMessages(overGroup, name(), CHUNK_BYTES);
  }

  /** Throws on all ranks if one reports a failure. */
  private static void agree(Communicator communicator, String failure) {
    Agreement.requireAll(
        communicator, failure.isEmpty() ? "" : "a trial with device memory failed: " + failure);
  }
}
