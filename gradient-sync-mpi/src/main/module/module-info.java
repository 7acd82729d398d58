/**
 * Ranks started by mpirun. Open MPI's {@code mpi.jar}, whose module name depends on its file, is
 * not required here: it is on the class path or the module path, and found at run time.
 */
module org.gradientsync.mpi {
  requires com.sun.jna;
  requires org.gradientsync;
  requires org.slf4j;

  exports org.gradientsync.mpi;

  provides org.gradientsync.spi.Launcher with
      org.gradientsync.mpi.MpiLauncher;
  provides org.gradientsync.spi.ReducerProvider with
      org.gradientsync.mpi.MpiReducerProvider,
      org.gradientsync.mpi.CudaAwareReducerProvider;
}
