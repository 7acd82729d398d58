package org.gradientsync.mpi;

import java.lang.Thread.UncaughtExceptionHandler;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.collective.Group;
import org.gradientsync.mpi.binding.OpenMpi;

/**
 * How an MPI rank ends: together with the others where all is well, and by ending the job where it
 * is not.
 */
final class JobEnd implements UncaughtExceptionHandler {

  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Map<String, Runnable> BEFORE_END = new ConcurrentHashMap<>();

  private final OpenMpi mpi;
  private final UncaughtExceptionHandler previous;

  private JobEnd(OpenMpi mpi, UncaughtExceptionHandler previous) {
    this.mpi = mpi;
    this.previous = previous;
  }

  /** Runs on the thread that ends MPI, just before; the last one for each key. */
  static void before(String what, Runnable preparation) {
    BEFORE_END.put(what, preparation);
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
                  BEFORE_END.values().forEach(Runnable::run);
                  // Where a rank was lost, it may never come; without limit this process would
                  // hang.
                  if (!mpi.finish(sound ? null : LIMIT)) {
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
