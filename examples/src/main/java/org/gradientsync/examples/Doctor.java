package org.gradientsync.examples;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Finds out what can be known about this machine and this job, and what is wrong with it. */
@Command(
    name = "doctor",
    description = {
      "Says what can be known about this machine, and under mpirun about this job: JDK, Open MPI,"
          + " settings, CPUs, shared memory, GPUs and the ways between them, the reducer that would be"
          + " taken and why no other one. At the end it says what is wrong, and what to do about it.",
      "Alone: examples/bin/doctor",
      "A job, started as your program is: mpirun -np 2 examples/bin/doctor",
      "Whatever might crash or hang is tried in processes of their own, and all is over within a"
          + " minute. Under mpirun rank 0 prints one page; a rank that cannot reach it prints its own."
    },
    exitCodeList = {
      Program.RIGHT + ":No problems were found, or rank 0 tells those of this rank.",
      Program.WRONG + ":There are problems; the output says which.",
      Program.BAD_USE + ":The command line asks for something that cannot be."
    })
public class Doctor extends Program {
  private static final int MOST_SECONDS = 55;
  private static final int LEAST_SECONDS = 10;
  private static final String END = "doctor-end";

  private final Duration used;
  private final boolean ownProcess;
  private final DoctorPlace place;
  private final DoctorFacts facts = new DoctorFacts();
  private final AtomicBoolean told = new AtomicBoolean();
  private DoctorRound round;

  @Option(names = "--json", description = "Print JSON instead of a page for people.")
  private boolean json;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      defaultValue = "50",
      description = "When to give up what is not finished (default: ${DEFAULT-VALUE}).")
  private int seconds;

  /** In a process that does other things, too. */
  Doctor() {
    this(Duration.ZERO, false);
  }

  private Doctor(Duration used, boolean ownProcess) {
    this.used = used;
    this.ownProcess = ownProcess;
    place = DoctorPlace.of(System.getenv());
  }

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    Duration used = Duration.ofMillis(ManagementFactory.getRuntimeMXBean().getUptime());
    start(new Doctor(used, true), args);
  }

  @Override
  void checkCommandLine() {
    requireAtLeast(LEAST_SECONDS, "--seconds", seconds);
    requireAtMost(MOST_SECONDS, "--seconds", seconds);
  }

  @Override
  int runProgram() {
    DoctorClock clock = new DoctorClock(Duration.ofSeconds(seconds), used);
    round = new DoctorRound(place, clock);
    if (ownProcess) {
      clock.guard(() -> leave("did not finish in time"));
      // mpirun ends all ranks when one is lost, with a second's notice.
      Runtime.getRuntime().addShutdownHook(new Thread(() -> leave("was ended from outside"), END));
    }
    try {
      say("looking and trying");
      DoctorExam exam = new DoctorExam(place, clock, System.getenv());
      exam.run(facts);
      say("joining the job");
      round.join(facts, exam.libraries());
    } catch (RuntimeException | Error e) {
      facts.add(DoctorClock.CHECKS, DoctorClock.ITSELF, "failed: " + e);
    }
    say("waiting for the other ranks");
    return tell(round.toTell(facts, true));
  }

  /** Once for all ranks. */
  private void say(String doing) {
    if (place.rank() == 0) {
      stage(doing);
    }
  }

  /** The exit code. */
  private int tell(List<DoctorReport> reports) {
    if (!told.compareAndSet(false, true) || reports.isEmpty()) {
      return RIGHT;
    }
    int size = Math.max(place.size(), reports.size());
    DoctorPage page =
        new DoctorPage(
            size, note(reports), reports, DoctorRules.of(size, place.launched(), reports));
    if (json) {
      print("%s", page.json(Instant.now()).strip());
    } else {
      page.lines().forEach(line -> print("%s", line));
    }
    round.told();
    return page.hasProblems() ? WRONG : RIGHT;
  }

  private String note(List<DoctorReport> reports) {
    return place.rank() != 0 && reports.stream().noneMatch(report -> report.rank() == 0)
        ? "Rank 0 could not be reached, so this is what "
            + DoctorRanks.text(reports.stream().map(DoctorReport::rank).toList())
            + " can tell."
        : "";
  }

  /** Tells what is known, if nobody has told it yet, and ends the JVM at once. */
  private void leave(String why) {
    int code = WRONG;
    try {
      if (told.get()) {
        code = RIGHT;
        return;
      }
      facts.add(DoctorClock.CHECKS, DoctorClock.ITSELF, why);
      code = tell(round.toTell(facts, false));
    } finally {
      DoctorChild.killAll(); // what was given up may still be running
      DoctorScratch.closeAll();
      boolean ending = Thread.currentThread().getName().equals(END);
      if (!ending || code != RIGHT) {
        Runtime.getRuntime().halt(WRONG);
      }
    }
  }
}
