package org.gradientsync.mpi.openmpi;

import mpi.MPI;
import mpi.MPIException;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.binding.MpiComm;
import org.gradientsync.mpi.binding.MpiFailure;

/** MPI through Open MPI's Java bindings, {@code mpi.jar} and {@code libmpi_java}. */
public final class JavaBindings implements MpiCalls {
  private static final String LIBRARY = "libmpi.so.40"; // Open MPI 4 and 5

  /** A call of the bindings. */
  interface Call<T> {
    T run() throws MPIException;
  }

  /** A call of the bindings without a result. */
  interface Action {
    void run() throws MPIException;
  }

  /** Loads no native library; the first call does. */
  public JavaBindings() {}

  static <T> T call(Call<T> call) throws MpiFailure {
    try {
      return call.run();
    } catch (MPIException e) {
      throw failure(e);
    }
  }

  static void run(Action action) throws MpiFailure {
    try {
      action.run();
    } catch (MPIException e) {
      throw failure(e);
    }
  }

  static MpiFailure failure(MPIException e) {
    return new MpiFailure(e.getMessage(), e.getErrorCode(), e.getErrorClass(), e);
  }

  @Override
  public String library() {
    return LIBRARY;
  }

  @Override
  public String version() {
    return MPI.getLibVersion().lines().findFirst().orElse("").split(",")[0].trim();
  }

  @Override
  public int serialized() {
    return MPI.THREAD_SERIALIZED;
  }

  @Override
  public int initialize() throws MpiFailure {
    return call(() -> MPI.InitThread(new String[0], MPI.THREAD_SERIALIZED));
  }

  @Override
  public boolean isInitialized() throws MpiFailure {
    return call(MPI::isInitialized);
  }

  @Override
  public boolean isFinalized() throws MpiFailure {
    return call(MPI::isFinalized);
  }

  @Override
  public int threadLevel() throws MpiFailure {
    return call(MPI::queryThread);
  }

  @Override
  public boolean isMainThread() throws MpiFailure {
    return call(MPI::isThreadMain);
  }

  @Override
  public String host() throws MpiFailure {
    return call(MPI::getProcessorName);
  }

  @Override
  public MpiComm world() {
    return new JavaComm(MPI.COMM_WORLD);
  }

  @Override
  public boolean letsOthersLive() {
    return false; // the bindings lack the functions
  }

  @Override
  public void finish() throws MpiFailure {
    run(MPI::Finalize);
  }
}
