package org.gradientsync.mpi;

import java.lang.Thread.UncaughtExceptionHandler;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.collective.Group;
import org.gradientsync.mpi.binding.OpenMpi;

/**
 * How an MPI rank ends: together with the others where all is well, and by ending the job where it
 * is not.
 */
final class JobEnd implements UncaughtExceptionHandler {

  private static final Set<Runnable> BEFORE_END = ConcurrentHashMap.newKeySet();

  private final OpenMpi mpi;
  private final UncaughtExceptionHandler previous;

  private JobEnd(OpenMpi mpi, UncaughtExceptionHandler previous) {
    this.mpi = mpi;
    this.previous = previous;
  }

  /** Runs on the thread that ends MPI, just before. */
  static void before(Runnable preparation) {
    BEFORE_END.add(preparation);
  }

  static void install(OpenMpi mpi, Group world) {
    Thread.setDefaultUncaughtExceptionHandler(
        new JobEnd(mpi, Thread.getDefaultUncaughtExceptionHandler()));
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  if (mpi.isFinished()) {
                    return; // by the program itself
                  }
                  boolean sound = world.leaveAll();
                  if (!mpi.isOwner()) {
                    return;
                  }
                  if (sound) {
                    BEFORE_END.forEach(Runnable::run);
                    mpi.finish();
                  } else {
                    // The others cannot all come to MPI's end any more: waiting for them would
                    // hang.
                    mpi.abort(1);
                  }
                },
                "gradient-sync-mpi-end"));
  }

  @Override
  public void uncaughtException(Thread thread, Throwable exception) {
    try {
      // Not through the log: without a logging backend nobody would learn why the job ended.
      System.err.println(
          "gradient-sync: rank "
              + mpi.rank()
              + " ends the job: uncaught exception in thread "
              + thread.getName());
      exception.printStackTrace(System.err);
      if (previous != null) {
        previous.uncaughtException(thread, exception);
      }
      System.err.flush();
    } finally {
      mpi.abort(1);
    }
  }
}
