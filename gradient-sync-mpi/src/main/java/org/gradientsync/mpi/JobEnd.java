package org.gradientsync.mpi;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.Thread.UncaughtExceptionHandler;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.collective.Group;
import org.gradientsync.mpi.binding.OpenMpi;

/**
 * How an MPI rank ends: together with the others where all is well, and by ending the job where it
 * is not.
 */
final class JobEnd implements UncaughtExceptionHandler {

  private static final int LOOKS = 20;
  private static final long LOOK_NANOS = 100_000;
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Duration OTHERS_FIRST = Duration.ofSeconds(3);

  private static volatile Runnable beforeEnd = () -> {};

  private final OpenMpi mpi;
  private final Group world;
  private final UncaughtExceptionHandler previous;

  private JobEnd(OpenMpi mpi, Group world, UncaughtExceptionHandler previous) {
    this.mpi = mpi;
    this.world = world;
    this.previous = previous;
  }

  /** Runs on the thread that ends MPI, just before; the last one that was given. */
  static void prepareWith(Runnable preparation) {
    beforeEnd = preparation;
  }

  static void install(OpenMpi mpi, Group world) {
    Thread.setDefaultUncaughtExceptionHandler(
        new JobEnd(mpi, world, Thread.getDefaultUncaughtExceptionHandler()));
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  if (mpi.isFinished()) {
                    return; // by the program itself
                  }
                  tellCause(mpi, world);
                  boolean over = !world.endedBy().isEmpty() || !world.isComplete();
                  boolean sound = world.leaveAll();
                  if (over) {
                    return; // mpirun ends all that is left; there is nobody to end MPI with
                  }
                  if (!mpi.isOwner()) {
                    return;
                  }
                  beforeEnd.run();
                  // Where a rank was lost, it may never come; without limit this process would
                  // hang.
                  if (!mpi.finish(sound ? null : LIMIT)) {
                    mpi.abort(1);
                  }
                },
                "gradient-sync-mpi-end"));
  }

  /**
   * Repeats what ended the job, if another rank has said so: mpirun prints pages of its own after
   * that rank's words. One rank does it for all, the lowest that is not concerned itself.
   */
  private static void tellCause(OpenMpi mpi, Group world) {
    String cause = "";
    for (int i = 0; i < LOOKS && cause.isEmpty(); i++) {
      cause = world.endedBy(); // each look lets a message come a little further
      LockSupport.parkNanos(LOOK_NANOS);
    }
    int teller = 0;
    while (cause.contains("rank " + teller + " ")) {
      teller++;
    }
    boolean nobodyElse = teller >= mpi.size() && !cause.startsWith("rank " + mpi.rank() + " ");
    if (!cause.isEmpty() && (mpi.rank() == teller || nobodyElse)) {
      say("the job was ended by " + cause);
    }
  }

  @Override
  public void uncaughtException(Thread thread, Throwable exception) {
    if (world.isEnding() && isOfACall(exception)) {
      if (cause().isEmpty()) {
        say(
            "rank "
                + mpi.rank()
                + " ends while "
                + thread.getName()
                + " makes calls: "
                + exception);
      }
      return; // whoever ends it does the rest
    }
    try {
      String cause = cause();
      if (exception instanceof RankLostException && !cause.isEmpty()) {
        say("rank " + mpi.rank() + " ends, because the job was ended by " + cause);
        pause(OTHERS_FIRST.multipliedBy(2)); // that rank ends the job, and has more to say
        return;
      }
      say("rank " + mpi.rank() + " ends the job: uncaught exception in " + thread.getName());
      StringWriter trace = new StringWriter();
      exception.printStackTrace(new PrintWriter(trace));
      System.err.print(trace); // as a whole: between its lines mpirun puts other ranks' ones
      if (previous != null) {
        previous.uncaughtException(thread, exception);
      }
      System.err.flush();
      if (exception instanceof RankLostException) {
        // Others lose that rank, too. The first one has the reports of all, and mpirun may be about
        // to say which rank was killed.
        pause(mpi.rank() == 0 ? OTHERS_FIRST.dividedBy(2) : OTHERS_FIRST);
      }
      if (!mpi.isFinished()) {
        world.leaveAll(exception.toString()); // so that the others can say why
      }
    } finally {
      mpi.abort(1);
    }
  }

  private static boolean isOfACall(Throwable exception) {
    Throwable e = exception;
    while (e != null && !(e instanceof GradientSyncException)) {
      e = e.getCause();
    }
    return e != null;
  }

  /** What another rank has said, unless that cannot be found out: what is at hand is to be told. */
  private String cause() {
    try {
      return mpi.isFinished() ? "" : world.endedBy();
    } catch (RuntimeException e) {
      return "";
    }
  }

  private static void pause(Duration duration) {
    try {
      Thread.sleep(duration.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // then at once
    }
  }

  /** Not through the log: without a logging backend nobody would learn why the job ended. */
  private static void say(String what) {
    System.err.println("gradient-sync: " + what);
    System.err.flush();
  }
}
