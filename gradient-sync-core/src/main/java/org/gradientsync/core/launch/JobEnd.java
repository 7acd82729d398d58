package org.gradientsync.core.launch;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.Thread.UncaughtExceptionHandler;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.host.ShutdownHooks;
import org.gradientsync.core.ranks.Departure;
import org.gradientsync.spi.JobProcess;
import org.gradientsync.spi.Timeouts;

/**
 * Ends a rank that is a process: together with the others after success, and by aborting the job
 * after a failure.
 */
final class JobEnd implements UncaughtExceptionHandler {

  private static final int FAILED = 1;
  private static final int CAUSE_ATTEMPTS = 20;
  private static final long POLL_NANOS = 100_000;
  private static final Duration POLL = Duration.ofMillis(1);
  private static final Duration HOOK_POLL = Duration.ofMillis(20);
  private static final Duration CHECK_INTERVAL = Duration.ofMillis(100);
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Duration HEAD_START = Duration.ofSeconds(3);

  private static volatile boolean elastic;
  private static volatile Timeouts longest;
  private static volatile Duration longestGrace = Duration.ZERO;

  private static JobEnd installed;

  private final UncaughtExceptionHandler previous;
  private volatile JobProcess job;
  private volatile ProcessGroup world; // null until this rank has joined the job
  private volatile boolean none; // the ranks of the job are no processes

  private JobEnd(UncaughtExceptionHandler previous) {
    this.previous = previous;
  }

  /**
   * Makes the end wait for other ranks for the longest time-out of this process's syncs, and for
   * the program's shutdown hooks for the longest grace.
   */
  static synchronized void waitAsLongAs(Timeouts timeouts, Duration grace) {
    longestGrace = grace.compareTo(longestGrace) > 0 ? grace : longestGrace;
    if (longest == null || timeouts.timeout().compareTo(longest.timeout()) > 0) {
      longest = timeouts;
    }
  }

  /** A rank that fails or ends does not end the others from now on. */
  static void letRanksEndAlone() {
    elastic = true;
  }

  private static boolean endsAlone(ProcessGroup world) {
    return elastic || world.job().hasGoneOn();
  }

  /** Handles uncaught exceptions from now on, those of a start that fails included. */
  static synchronized JobEnd install() {
    if (installed == null) {
      installed = new JobEnd(Thread.getDefaultUncaughtExceptionHandler());
      Thread.setDefaultUncaughtExceptionHandler(installed);
    }
    return installed;
  }

  /**
   * Ends this rank together with the others from now on.
   *
   * @param process empty if the ranks of the job are no processes, which end without this class
   */
  void joined(Optional<JobProcess> process, ProcessGroup ranks) {
    none = process.isEmpty();
    if (none) {
      return;
    }
    follow(process.get(), ranks);
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> shutDown(job, world), "gradient-sync-end"));
    SharedFiles.leaveDeletionToCaller();
  }

  /** From now on this rank ends together with these ranks. */
  void follow(JobProcess process, ProcessGroup ranks) {
    job = process;
    world = ranks;
  }

  private static void shutDown(JobProcess job, ProcessGroup world) {
    Departure departure = Departure.ofThisProcess();
    boolean aborted;
    boolean noneLost;
    try {
      if (job.isFinished()) {
        return; // the program has ended the backend itself
      }
      if (!awaitCause(world).isEmpty()) {
        SharedFiles.deleteAllOfJob(); // at once: mpirun kills this process in a moment
      } else {
        awaitProgram(world);
      }
      repeatCause(job, world);
      aborted =
          !world.parts().liveness().endedBy().isEmpty() || !world.parts().liveness().isComplete();
      noneLost = world.job().leave(departure, "");
    } finally {
      SharedFiles.deleteAll(); // after the notice: who misses a file looks for it
    }
    if (endsAlone(world)) {
      job.haveAllCome(); // others may wait for this rank's word
      job.finish();
      return;
    }
    // After a failure the launcher ends the remaining ranks, which do not come to this end.
    if (!aborted && job.isOwner()) {
      end(job, world, departure, noneLost);
    }
  }

  /**
   * After a signal, lets calls go on while the program's own shutdown hooks run: one may wait until
   * the ranks have stopped after the same step, and have saved. Returns at once if there are none,
   * because nothing would end the calls then.
   */
  private static void awaitProgram(ProcessGroup world) {
    List<Thread> hooks = longestGrace.isZero() ? List.of() : ShutdownHooks.ofProgram();
    WaitClock time = new WaitClock();
    while (hooks.stream().anyMatch(Thread::isAlive)
        && world.parts().liveness().isComplete()
        && world.parts().liveness().endedBy().isEmpty()
        && time.look() < Timeouts.nanos(longestGrace)) {
      pause(HOOK_POLL);
    }
  }

  /**
   * Ends the job together with the other ranks, or aborts the job if some do not come.
   *
   * @param departure how this rank leaves
   * @param noneLost false if a rank was lost, which may then never come
   */
  private static void end(
      JobProcess job, ProcessGroup world, Departure departure, boolean noneLost) {
    Timeouts timeouts = longest;
    long limit = noneLost ? timeouts.timeoutNanos() : LIMIT.toNanos();
    WaitClock time = new WaitClock();
    long lastCheck = 0;
    boolean warned = false;
    while (!job.haveAllCome()) {
      pause(POLL);
      long waited = time.look();
      if (waited - lastCheck < CHECK_INTERVAL.toNanos()) {
        continue;
      }
      lastCheck = waited;
      // In this order, because a rank that fails says why before its process ends.
      boolean complete = world.parts().liveness().isComplete();
      String cause = complete ? world.parts().liveness().endedBy() : awaitCause(world);
      if (!cause.isEmpty()) {
        follow(job, world, departure, cause);
        return;
      }
      List<Integer> staying = world.parts().liveness().staying();
      // The lowest rank that has ended reports for all, and the others only if it does not.
      boolean first = staying.containsAll(IntStream.range(0, world.rank()).boxed().toList());
      if (!complete || waited > limit + (first ? 0 : HEAD_START.toNanos())) {
        print(
            "rank "
                + world.rank()
                + " ends the job: it has come to its end and waited "
                + Amounts.time(Duration.ofNanos(waited).truncatedTo(ChronoUnit.SECONDS))
                + " for "
                + awaited(job, world, staying)
                + (complete
                    ? "; if a rank has more to do, raise gradientsync.timeout, which is "
                        + Amounts.time(timeouts.timeout())
                    : ""));
        abort(job, RankLostException.EXIT_CODE);
        return;
      }
      if (first && !warned && waited > timeouts.lateNanos()) {
        warned = true;
        print(
            "rank %s has come to its end and waited %s for %s; it ends the job after %s"
                .formatted(
                    world.rank(),
                    Amounts.time(timeouts.late()),
                    awaited(job, world, staying),
                    Amounts.time(limit)));
      }
    }
    Thread watch = new Thread(() -> haltAfter(job, world, timeouts), "gradient-sync-end-watch");
    watch.setDaemon(true);
    watch.start();
    job.finish();
    watch.interrupt();
  }

  /**
   * Leaves the end of the job to the rank that has failed, and outlives it: the launcher sees the
   * code of the first process that ends. mpirun ends this one meanwhile. If that rank needed this
   * one, whose program called System.exit, this process ends with the program's code, and mpirun
   * ends the others. That code is not known here, so this process aborts the job where the launcher
   * would take 0 for success.
   */
  private static void follow(
      JobProcess job, ProcessGroup world, Departure departure, String cause) {
    if (departure == Departure.EXIT && cause.contains(Departure.EXIT.text())) {
      pause(HEAD_START.dividedBy(2)); // the others print their exceptions
      print(
          "rank %s ends the job: %s while other ranks needed it"
              .formatted(world.rank(), Departure.EXIT.text()));
      if (!job.earlyExitFails()) {
        abort(job, FAILED);
      }
    } else {
      WaitClock time = new WaitClock();
      while (!world.parts().liveness().hasEnderDied() && time.look() < LIMIT.toNanos()) {
        pause(HOOK_POLL);
      }
    }
  }

  /** Deletes shared files itself, because aborting runs no shutdown hooks. */
  private static void abort(JobProcess job, int code) {
    try {
      SharedFiles.deleteAllOfJob();
    } finally {
      job.abort(code);
    }
  }

  private static String awaited(JobProcess job, ProcessGroup world, List<Integer> staying) {
    String silent = job.troubles(peer -> world.whyLeft(peer).isEmpty());
    String troubles = silent.isEmpty() ? job.troubles(peer -> true) : silent;
    String names = staying.isEmpty() ? "other ranks" : world.names(staying);
    return names + (troubles.isEmpty() ? "" : ": " + troubles);
  }

  /** The end of a backend, such as MPI_Finalize, may hang if a rank is lost during it. */
  private static void haltAfter(JobProcess job, ProcessGroup world, Timeouts timeouts) {
    WaitClock time = new WaitClock();
    while (time.look() < timeouts.timeoutNanos()) {
      try {
        Thread.sleep(POLL.toMillis());
      } catch (InterruptedException e) {
        return; // it has ended
      }
    }
    String troubles = job.troubles(peer -> true);
    print(
        "rank "
            + world.rank()
            + " ends: "
            + job.finishName()
            + " has not returned in "
            + Amounts.time(timeouts.timeout())
            + (troubles.isEmpty() ? "" : ", " + troubles));
    Runtime.getRuntime().halt(RankLostException.EXIT_CODE);
  }

  /**
   * Repeats another rank's message about the end of the job, because mpirun prints pages of text
   * after that message. The lowest rank that the message does not name prints it for all.
   */
  private static void repeatCause(JobProcess job, ProcessGroup world) {
    String cause = awaitCause(world);
    if (cause.contains(Departure.EXIT.text())) {
      return; // the rank that has exited says so itself
    }
    int reporter = 0;
    while (cause.contains("rank " + reporter + " ")) {
      reporter++;
    }
    boolean noOther = reporter >= world.size() && !cause.startsWith("rank " + world.rank() + " ");
    if (!cause.isEmpty() && (world.rank() == reporter || noOther)) {
      print("the job was ended by " + cause);
    }
  }

  private static String awaitCause(ProcessGroup world) {
    String cause = "";
    for (int i = 0; i < CAUSE_ATTEMPTS && cause.isEmpty(); i++) {
      cause = world.parts().liveness().endedBy(); // each call lets messages make progress
      LockSupport.parkNanos(POLL_NANOS);
    }
    return cause;
  }

  @Override
  public void uncaughtException(Thread thread, Throwable exception) {
    RankLostException lost = find(RankLostException.class, exception);
    if (world == null) {
      endBeforeStart(thread, exception, lost);
      return;
    }
    if (endsAlone(world) && !world.job().isEnding()) {
      endAlone(thread, exception, lost);
      return;
    }
    if (world.job().isEnding() && find(GradientSyncException.class, exception) != null) {
      if (cause().isEmpty()) {
        print(
            "rank %s ends while %s makes calls: %s"
                .formatted(world.rank(), thread.getName(), exception));
      }
      return; // the thread that ends the process does the rest
    }
    boolean exited = lost != null && lost.getMessage().contains(Departure.EXIT.text());
    try {
      String cause = cause();
      if (lost != null && !exited && !cause.isEmpty()) {
        print("rank " + world.rank() + " ends, because the job was ended by " + cause);
        pause(HEAD_START.multipliedBy(2)); // that rank ends the job and prints the details
        return;
      }
      print(
          "rank %s%s: uncaught exception in %s"
              .formatted(world.rank(), exited ? " ends" : " ends the job", thread.getName()));
      System.err.print( // at once, because mpirun would mix single lines with other ranks' lines
          trace(exception));
      if (previous != null) {
        previous.uncaughtException(thread, exception);
      }
      System.err.flush();
      if (lost != null && !exited) {
        // Other ranks lose that rank, too; rank 0 ends the job for all. One of them may be about to
        // log the reports, and mpirun to print which rank was killed.
        pause(world.rank() == 0 ? HEAD_START.dividedBy(2) : HEAD_START);
      }
      if (!job.isFinished()) {
        world
            .job()
            .leave(
                Departure.CLOSED, exception.toString()); // so that the others can report the cause
      }
      if (exited) {
        pause(HEAD_START.multipliedBy(2)); // that rank ends the job with its program's code
      }
    } finally {
      abort(job, lost == null ? FAILED : lost.exitCode());
    }
  }

  /** Tells the others why, and leaves them to go on. */
  private void endAlone(Thread thread, Throwable exception, RankLostException lost) {
    try {
      print("rank " + world.rank() + " ends alone: uncaught exception in " + thread.getName());
      System.err.print(trace(exception));
      if (previous != null) {
        previous.uncaughtException(thread, exception);
      }
      System.err.flush();
      if (!job.isFinished()) {
        world.job().leave(Departure.CLOSED, exception.toString());
        job.finish();
      }
    } finally {
      SharedFiles.deleteAll();
      Runtime.getRuntime().halt(lost == null ? FAILED : lost.exitCode());
    }
  }

  /**
   * Ends the process if a rank was lost while the job started. After other exceptions the JVM ends
   * as it always does, once all threads have ended.
   */
  private void endBeforeStart(Thread thread, Throwable exception, RankLostException lost) {
    if (previous != null) {
      previous.uncaughtException(thread, exception);
    } else {
      System.err.print("Exception in thread \"" + thread.getName() + "\" " + trace(exception));
    }
    System.err.flush();
    if (lost != null && !none) {
      SharedFiles.deleteAll();
      Runtime.getRuntime()
          .halt(lost.exitCode()); // exit() could wait for a thread inside the backend
    }
  }

  private static String trace(Throwable exception) {
    StringWriter trace = new StringWriter();
    exception.printStackTrace(new PrintWriter(trace));
    return trace.toString();
  }

  /** The first exception of a class in a chain of causes, or null. */
  private static <E extends Throwable> E find(Class<E> type, Throwable exception) {
    Throwable e = exception;
    while (e != null && !type.isInstance(e)) {
      e = e.getCause();
    }
    return type.cast(e);
  }

  /** The cause that another rank has sent, or an empty text, also if reading it fails. */
  private String cause() {
    try {
      return job.isFinished() ? "" : world.parts().liveness().endedBy();
    } catch (RuntimeException e) {
      return "";
    }
  }

  private static void pause(Duration duration) {
    try {
      Thread.sleep(duration.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt(); // returns at once
    }
  }

  /** Bypasses the log: without a logging backend, the cause would be lost. */
  private static void print(String message) {
    System.err.println("gradient-sync: " + message);
    System.err.flush();
  }
}
