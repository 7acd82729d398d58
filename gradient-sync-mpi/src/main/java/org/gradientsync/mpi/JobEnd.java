package org.gradientsync.mpi;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.Thread.UncaughtExceptionHandler;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.SharedFiles;
import org.gradientsync.internal.ranks.Departure;
import org.gradientsync.internal.ranks.WaitClock;
import org.gradientsync.mpi.binding.OpenMpi;
import org.gradientsync.spi.Timeouts;

/**
 * How an MPI rank ends: together with the others where all is well, and by ending the job where it
 * is not.
 */
final class JobEnd implements UncaughtExceptionHandler {

  private static final int LOOKS = 20;
  private static final long LOOK_NANOS = 100_000;
  private static final Duration POLL = Duration.ofMillis(1);
  private static final Duration LOOK = Duration.ofMillis(100);
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Duration OTHERS_FIRST = Duration.ofSeconds(3);

  private static volatile Runnable beforeEnd = () -> {};
  private static volatile Timeouts longest;

  private final OpenMpi mpi;
  private final ProcessGroup world;
  private final UncaughtExceptionHandler previous;

  private JobEnd(OpenMpi mpi, ProcessGroup world, UncaughtExceptionHandler previous) {
    this.mpi = mpi;
    this.world = world;
    this.previous = previous;
  }

  /** Runs on the thread that ends MPI, just before; the last one that was given. */
  static void prepareWith(Runnable preparation) {
    beforeEnd = preparation;
  }

  /** How long the end waits for other ranks: as long as the most patient sync of this process. */
  static synchronized void waitAsLongAs(Timeouts timeouts) {
    if (longest == null || timeouts.timeout().compareTo(longest.timeout()) > 0) {
      longest = timeouts;
    }
  }

  static void install(OpenMpi mpi, ProcessGroup world) {
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
                  boolean sound = world.leaveAll(Departure.ofThisProcess(), "");
                  if (over) {
                    return; // mpirun ends all that is left; there is nobody to end MPI with
                  }
                  if (!mpi.isOwner()) {
                    return;
                  }
                  beforeEnd.run();
                  end(mpi, world, sound);
                },
                "gradient-sync-mpi-end"));
  }

  /**
   * Ends MPI together with the other ranks, or without those that do not come.
   *
   * @param sound whether no rank was lost; otherwise it may never come
   */
  private static void end(OpenMpi mpi, ProcessGroup world, boolean sound) {
    Timeouts timeouts = longest;
    long limit = sound ? timeouts.timeoutNanos() : LIMIT.toNanos();
    WaitClock time = new WaitClock();
    long looked = 0;
    boolean warned = false;
    while (!mpi.haveAllCome()) {
      pause(POLL);
      long waited = time.look();
      if (waited - looked < LOOK.toNanos()) {
        continue;
      }
      looked = waited;
      List<Integer> staying = world.staying();
      // The lowest rank that has ended speaks for all, and the others only if it does not.
      boolean first = staying.containsAll(IntStream.range(0, mpi.rank()).boxed().toList());
      boolean complete = world.isComplete();
      if (!complete || waited > limit + (first ? 0 : OTHERS_FIRST.toNanos())) {
        say(
            "rank "
                + mpi.rank()
                + " ends the job: it has come to its end and waited "
                + Duration.ofNanos(waited).truncatedTo(ChronoUnit.SECONDS)
                + " for "
                + awaited(mpi, world, staying)
                + (complete
                    ? "; if a rank has more to do, raise gradientsync.timeout=" + timeouts.timeout()
                    : ""));
        abort(mpi);
        return;
      }
      if (first && !warned && waited > timeouts.lateNanos()) {
        warned = true;
        say(
            "rank "
                + mpi.rank()
                + " has come to its end and waited "
                + timeouts.late()
                + " for "
                + awaited(mpi, world, staying)
                + "; it ends the job after "
                + Duration.ofNanos(limit));
      }
    }
    Thread watch = new Thread(() -> haltAfter(mpi, timeouts), "gradient-sync-mpi-end-watch");
    watch.setDaemon(true);
    watch.start();
    mpi.finish();
    watch.interrupt();
  }

  /** Runs no shutdown hook. */
  private static void abort(OpenMpi mpi) {
    try {
      SharedFiles.deleteAll();
    } finally {
      mpi.abort(1);
    }
  }

  private static String awaited(OpenMpi mpi, ProcessGroup world, List<Integer> staying) {
    String troubles = mpi.troubles();
    String names = staying.isEmpty() ? "other ranks" : world.names(staying);
    return names + (troubles.isEmpty() ? "" : ": " + troubles);
  }

  /** MPI_Finalize takes no time-out, and hangs where a rank is lost in it. */
  private static void haltAfter(OpenMpi mpi, Timeouts timeouts) {
    WaitClock time = new WaitClock();
    while (time.look() < timeouts.timeoutNanos()) {
      try {
        Thread.sleep(POLL.toMillis());
      } catch (InterruptedException e) {
        return; // MPI has ended
      }
    }
    String troubles = mpi.troubles();
    say(
        "rank "
            + mpi.rank()
            + " ends: MPI_Finalize has not returned in "
            + timeouts.timeout()
            + (troubles.isEmpty() ? "" : ", " + troubles));
    Runtime.getRuntime().halt(1);
  }

  /**
   * Repeats what ended the job, if another rank has said so: mpirun prints pages of its own after
   * that rank's words. One rank does it for all, the lowest that is not concerned itself.
   */
  private static void tellCause(OpenMpi mpi, ProcessGroup world) {
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
        world.leaveAll(Departure.CLOSED, exception.toString()); // so that the others can say why
      }
    } finally {
      abort(mpi);
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
