package org.gradientsync.mpi;

import java.util.Set;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerParts;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/**
 * Provides {@code mpi}, which passes host memory to MPI point-to-point calls and adds on the CPU.
 */
public final class MpiReducerProvider implements ReducerProvider {
  /** For the service loader. */
  public MpiReducerProvider() {}

  @Override
  public String name() {
    return "mpi";
  }

  @Override
  public Set<String> settings() {
    return Set.of(MpiBinding.SETTING);
  }

  @Override
  public int priority() {
    return 100;
  }

  @Override
  public Availability availability(SyncContext context) {
    if (!context.group().transport().name().equals(MpiLauncher.NAME)) {
      return Availability.no(
          "the ranks were not started by mpirun: launcher=" + context.group().transport().name());
    }
    if (!context.device().kind().equals("host")) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    return Availability.yes();
  }

  @Override
  public Reducer create(SyncContext context) {
    return context.parts().overMessages(context, name(), ReducerParts.HOST_CHUNK_BYTES);
  }
}
