package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Runs jobs of {@link LosingRanks}, and checks what must hold on every device. */
final class LostRank {
  static final String NAME = "rank 1 \\(host=[^,]+, process=\\d+\\)";

  private static final Pattern ANYTHING = Pattern.compile("");
  private static final Pattern TIMED_OUT =
      Pattern.compile("(Exception|ended by rank \\d .*): timed out: ");
  private static final Pattern ENDED =
      Pattern.compile("ended by " + NAME + ": .*IllegalStateException: the data ran out");
  private static final Pattern PROCESS = Pattern.compile("process=(\\d+)");

  private LostRank() {}

  /**
   * Loses rank 1, and checks the messages of the other ranks, the last lines on the screen, and
   * that nothing is left behind.
   *
   * @param reports the folder for the ranks' reports
   */
  static Mpirun.Result lose(
      int ranks, String device, String manner, String phase, String reducer, Path reports)
      throws Exception {
    String[] arguments = {manner, phase, reducer, reports.toString(), device};
    Mpirun.Result job = run(ranks, manner, arguments);
    // On a busy machine, mpirun kills ranks that it has told to end before they have had their say.
    Pattern last = manner.equals("throw") ? ENDED : manner.equals("stop") ? TIMED_OUT : ANYTHING;
    for (int i = 0; i < 2 && !last.matcher(lastLines(job)).find(); i++) {
      job = run(ranks, manner, arguments);
    }
    if (manner.equals("late")) {
      assertEquals(0, job.exitCode(), job.output());
    } else {
      assertNotEquals(0, job.exitCode());
    }
    switch (manner) {
      case "kill" -> requireMatch(job, NAME + " has died, .*waited=");
      case "stop" -> {
        requireMatch(job, "timed out: .*waited=");
        requireMatch(
            job,
            "(?s)what each of " + ranks + " ranks was doing.*\n  rank 1 has written no report");
        requireMatch(lastLines(job), TIMED_OUT.pattern());
      }
      case "stick" -> {
        requireMatch(job, "WARN .*has waited 1 s for .*" + NAME);
        requireMatch(job, "timed out: .*" + NAME + ".* did not join in time");
        requireMatch(job, "\n  rank 1 .*" + idle(phase) + ".*stickInUserCode");
      }
      case "throw" -> {
        requireMatch(job, "java.lang.IllegalStateException: the data ran out\n\tat ");
        requireMatch(lastLines(job), ENDED.pattern());
      }
      case "late" -> {
        requireMatch(job, "WARN .*has waited 1 s for .*" + NAME);
        for (int rank = 0; rank < ranks; rank++) {
          job.expect("rank " + rank + " has come to the end");
        }
      }
      default -> throw new IllegalArgumentException(manner);
    }
    requireNothingLeft(job, ranks);
    return job;
  }

  private static Mpirun.Result run(int ranks, String manner, String[] arguments) throws Exception {
    // If mpirun sees a killed rank, it may end the others before they notice.
    return manner.equals("kill")
        ? Mpirun.runHidden(ranks, Map.of(), List.of(), LosingRanks.class, arguments)
        : Mpirun.run(ranks, List.of(), LosingRanks.class, arguments);
  }

  static void requireMatch(Mpirun.Result job, String regex) {
    requireMatch(job.output(), regex);
  }

  static void requireMatch(String text, String regex) {
    assertTrue(
        Pattern.compile(regex).matcher(text).find(), () -> "no '" + regex + "' in:\n" + text);
  }

  /**
   * Returns the last lines that a user sees: without stack traces, and without the bracketed lines
   * that mpirun prints if two ranks abort at the same time.
   */
  static String lastLines(Mpirun.Result job) {
    // Open MPI may say late, in lines of its own, that a peer has gone.
    String output =
        job.output().replaceAll("(?s)-{70,}\\n[^-][^\\n]*peer process has.*?\\n-{70,}\\n", "");
    List<String> lines =
        output.lines().filter(l -> !l.startsWith("\tat ") && !l.startsWith("[")).toList();
    return String.join("\n", lines.subList(Math.max(0, lines.size() - 8), lines.size()));
  }

  /** Returns what a report says about a rank that is stuck in its own code. */
  static String idle(String phase) {
    return phase.equals("before") ? "has made no call" : "is in no call since ";
  }

  /** mpirun may end shortly before the last process that it has killed. */
  private static void awaitEnd(long process) throws Exception {
    for (int i = 0; i < 200 && !isGone(process); i++) {
      Thread.sleep(100);
    }
    assertTrue(isGone(process), () -> "still there: " + process);
  }

  /** Returns whether a process has ended, reaped or not. */
  private static boolean isGone(long process) throws IOException {
    Path state = Path.of("/proc", Long.toString(process), "stat");
    try {
      return Files.readString(state).replaceFirst(".*\\) ", "").startsWith("Z");
    } catch (NoSuchFileException e) {
      return true;
    }
  }

  /** Checks that no process and no shared memory is left. */
  private static void requireNothingLeft(Mpirun.Result job, int ranks) throws Exception {
    List<Long> processes = new ArrayList<>();
    for (Matcher m = PROCESS.matcher(job.output()); m.find(); ) {
      processes.add(Long.parseLong(m.group(1)));
    }
    assertTrue(processes.size() >= ranks, job.output());
    for (long process : processes) {
      awaitEnd(process);
      try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
        List<Path> left =
            files
                .filter(
                    f ->
                        f.toString().contains("gradient-sync")
                            && f.toString().contains("-" + process + "-"))
                .toList();
        assertEquals(List.of(), left);
      }
    }
  }
}
