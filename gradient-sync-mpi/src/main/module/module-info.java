/**
 * Ranks started by mpirun. This module does not require Open MPI's {@code mpi.jar}, whose module name depends on the file's name. The jar is on the class path or the module path, and the module finds it at run time.
 */
module org.gradientsync.mpi {
  requires com.sun.jna;
  requires org.gradientsync.core;
  requires org.slf4j;

  exports org.gradientsync.mpi;

  provides org.gradientsync.spi.Launcher with
      org.gradientsync.mpi.MpiLauncher;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.mpi.MpiReducerProvider,
      org.gradientsync.mpi.CudaAwareReducerProvider;
}
