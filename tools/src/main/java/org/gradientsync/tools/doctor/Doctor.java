package org.gradientsync.tools.doctor;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gradientsync.core.backend.LauncherVariables;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.Scratch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Finds out about this machine and this job, and what is wrong with them. */
@Command(
    name = "doctor",
    description = {
      "Says what is wrong with this machine or this job, and what to do.",
      "Before that it says what can be known about the machine, and under mpirun about the job:"
          + " JDK, Open MPI, settings, CPUs, shared memory, GPUs and the ways between them, the"
          + " reducer that would be taken and why no other one.",
      "Alone: gradient-sync doctor",
      "A job, started as your program is: gradient-sync run -np 2 doctor",
      "Whatever might crash or hang is tried in processes of their own, and all is over within a"
          + " minute. Under mpirun rank 0 prints one page; a rank that cannot reach it prints its"
          + " own."
    },
    exitCodeList = {
      Program.RIGHT + ":No problems were found, or rank 0 tells those of this rank.",
      Program.WRONG + ":There are problems; the output says which.",
      Program.BAD_USE + ":The command line asks for something that cannot be."
    })
public final class Doctor extends Program {
  private static final int MOST_SECONDS = 55;
  private static final int LEAST_SECONDS = 10;
  private static final String END = "doctor-end";

  private final Place place = Place.of(LauncherVariables.environment());
  private final Facts facts = new Facts();
  private final AtomicBoolean told = new AtomicBoolean();
  private Round round;

  @Option(names = "--json", description = "Print JSON instead of a page for people.")
  private boolean json;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      defaultValue = "50",
      description = "When to give up what is not finished (default: ${DEFAULT-VALUE}).")
  private int seconds;

  @Override
  public void checkCommandLine() {
    requireAtLeast(LEAST_SECONDS, "--seconds", seconds);
    requireAtMost(MOST_SECONDS, "--seconds", seconds);
  }

  @Override
  public int runProgram() {
    Duration used = Duration.ofMillis(ManagementFactory.getRuntimeMXBean().getUptime());
    Clock clock = new Clock(Duration.ofSeconds(seconds), used);
    round = new Round(place, clock);
    clock.guard(() -> leave("did not finish in time"));
    // mpirun ends all ranks when one is lost, with one second's notice.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> leave("was ended from outside"), END));
    try {
      say("looking and trying");
      Exam exam = new Exam(place, clock, LauncherVariables.environment());
      exam.run(facts);
      say("joining the job");
      round.join(facts, exam.libraries());
    } catch (RuntimeException | Error e) {
      facts.add(Clock.CHECKS, Clock.ITSELF, "failed: " + e);
    }
    say("waiting for the other ranks");
    return tell(round.toTell(facts, true));
  }

  /** Shows the stage once for all ranks. */
  private void say(String doing) {
    if (place.rank() == 0) {
      stage(doing);
    }
  }

  /** Prints the page, and returns the exit code. */
  private int tell(List<Report> reports) {
    if (!told.compareAndSet(false, true) || reports.isEmpty()) {
      return RIGHT;
    }
    int size = Math.max(place.size(), reports.size());
    Page page = new Page(size, note(reports), reports, Rules.of(size, place.launched(), reports));
    if (json) {
      print("%s", page.json(Instant.now()).strip());
    } else {
      page.lines().forEach(line -> print("%s", line));
    }
    round.told();
    return page.hasProblems() ? WRONG : RIGHT;
  }

  private String note(List<Report> reports) {
    return place.rank() != 0 && reports.stream().noneMatch(report -> report.rank() == 0)
        ? "Rank 0 could not be reached, so this is what "
            + Ranks.text(reports.stream().map(Report::rank).toList())
            + " can tell."
        : "";
  }

  /** Prints what is known, unless it was printed already, and ends the JVM at once. */
  private void leave(String why) {
    int code = WRONG;
    try {
      if (told.get()) {
        code = RIGHT;
        return;
      }
      facts.add(Clock.CHECKS, Clock.ITSELF, why);
      code = tell(round.toTell(facts, false));
    } finally {
      ChildProcess.killAll(); // abandoned checks may still run
      Scratch.closeAll();
      boolean ending = Thread.currentThread().getName().equals(END);
      if (!ending || code != RIGHT) {
        Runtime.getRuntime().halt(WRONG);
      }
    }
  }
}
