package org.gradientsync.mpi;

import org.gradientsync.spi.MessageReducerProvider;

/**
 * Provides {@code mpi}, which passes host memory to MPI point-to-point calls and adds on the CPU.
 */
public final class MpiReducerProvider extends MessageReducerProvider {
  /** For the service loader. */
  public MpiReducerProvider() {
    super(MpiLauncher.NAME, 100, "the ranks were not started by mpirun");
  }
}
