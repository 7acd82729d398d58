package org.gradientsync.mpi.openmpi;

import java.util.concurrent.Callable;
import mpi.MPI;

/** A program's own calls of MPI. */
public final class UsersMpi {
  private UsersMpi() {}

  public static void start() {
    call(() -> MPI.InitThread(new String[0], MPI.THREAD_MULTIPLE));
  }

  public static void startForOneThread() {
    call(() -> MPI.InitThread(new String[0], MPI.THREAD_FUNNELED));
  }

  public static void stop() {
    call(
        () -> {
          MPI.Finalize();
          return null;
        });
  }

  public static boolean isFinalized() {
    return call(MPI::isFinalized);
  }

  public static int sumOfRanks() {
    int[] sum = {call(MPI.COMM_WORLD::getRank)};
    call(
        () -> {
          MPI.COMM_WORLD.allReduce(sum, 1, MPI.INT, MPI.SUM);
          return null;
        });
    return sum[0];
  }

  private static <T> T call(Callable<T> operation) {
    try {
      return operation.call();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
