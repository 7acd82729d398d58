package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A rank is lost: what the others say, what their users read, and what stays behind. */
class LostRankIT {
  private static final Pattern PROCESS = Pattern.compile("process=(\\d+)");
  static final String NAME = "rank 1 \\(host=[^,]+, process=\\d+\\)";

  @TempDir Path reports;

  @ParameterizedTest
  @CsvSource({"before, mpi", "during, mpi", "during, shared"})
  void aKilledRankIsNamedByTheOthersAndByMpirun(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("kill", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job, NAME + " has died, lastFinished=(allReduce.*, call=\\d+|none), waited=");
    requireMatch(lastLines(job), "process rank 1 .* exited on signal 9");
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"during, mpi", "during, shared"})
  void aStoppedRankIsNamedAfterTheTimeout(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("stop", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job, "WARN .*rank [02] has waited PT1S for .*" + NAME);
    requireMatch(job, "timed out: .*" + NAME + ".* in time, lastFinished=.*waited=PT3S");
    requireMatch(job, "(?s)what each of 3 ranks was doing.*\n  rank 1 has written no report");
    requireMatch(lastLines(job), "(Exception|ended by rank \\d .*): timed out: .*" + NAME);
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"before, mpi", "between, shared"})
  void aRankThatIsStuckInItsProgramSaysWhere(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("stick", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job, "timed out: .*" + NAME + ".* did not join in time");
    requireMatch(job, "\n  rank 0 .*waits for rank 1 since ");
    requireMatch(job, "\n  rank 1 .*is in no call since .*, thread \"main\" at .*stickInUserCode");
    requireMatch(lastLines(job), "(Exception|ended by rank \\d .*): timed out: .*" + NAME);
    requireReports();
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"before, shared", "between, mpi"})
  void anExceptionIsTheLastThingThatIsRead(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("throw", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job, "java.lang.IllegalStateException: the data ran out\n\tat ");
    requireMatch(
        lastLines(job), "ended by " + NAME + ": .*IllegalStateException: the data ran out");
    requireNothingLeft(job);
  }

  @Test
  void aLateRankIsAWarning() throws Exception {
    Mpirun.Result job = lose("late", "between", "shared");
    assertEquals(0, job.exitCode(), job.output());
    requireMatch(job, "WARN .*has waited PT1S for " + NAME + ", lastFinished=allReduce.*, call=5");
    job.expect("rank 0 has come to the end").expect("rank 1 has come").expect("rank 2 has come");
    requireNothingLeft(job);
  }

  private Mpirun.Result lose(String manner, String phase, String reducer) throws Exception {
    return Mpirun.run(
        3, List.of(), LosingRanks.class, manner, phase, reducer, reports.toString(), "host");
  }

  static void requireMatch(Mpirun.Result job, String regex) {
    requireMatch(job.output(), regex);
  }

  static void requireMatch(String text, String regex) {
    assertTrue(
        Pattern.compile(regex).matcher(text).find(), () -> "no '" + regex + "' in:\n" + text);
  }

  /** What stays on a user's screen; stack traces are long. */
  static String lastLines(Mpirun.Result job) {
    List<String> lines = job.output().lines().filter(l -> !l.startsWith("\tat ")).toList();
    return String.join("\n", lines.subList(Math.max(0, lines.size() - 8), lines.size()));
  }

  private void requireReports() throws IOException {
    List<Path> folders;
    try (Stream<Path> all = Files.list(reports)) {
      folders = all.toList();
    }
    assertEquals(1, folders.size(), folders::toString);
    Path folder = folders.get(0);
    String mode = PosixFilePermissions.toString(Files.getPosixFilePermissions(folder));
    assertEquals("rwx------", mode);
    for (int rank = 0; rank < 3; rank++) {
      String report = Files.readString(folder.resolve("rank-" + rank + ".txt"));
      requireMatch(report, "last calls, oldest first:");
      requireMatch(report, "\"main\" ");
      requireMatch(report, "java.version=");
      requireMatch(report, "OMPI_COMM_WORLD_RANK=" + rank);
    }
    requireMatch(Files.readString(folder.resolve("summary.txt")), "rank 1 .*stickInUserCode");
  }

  /** mpirun may end a little before the last of what it has killed. */
  private static void awaitEnd(long process) throws Exception {
    for (int i = 0; i < 200 && !isGone(process); i++) {
      Thread.sleep(100);
    }
    assertTrue(isGone(process), () -> "still there: " + process);
  }

  /** Ended, whether or not anybody has asked for its exit code. */
  private static boolean isGone(long process) throws IOException {
    Path state = Path.of("/proc", Long.toString(process), "stat");
    try {
      return Files.readString(state).replaceFirst(".*\\) ", "").startsWith("Z");
    } catch (NoSuchFileException e) {
      return true;
    }
  }

  /** No process and no shared memory. */
  static void requireNothingLeft(Mpirun.Result job) throws Exception {
    List<Long> processes = new ArrayList<>();
    for (Matcher m = PROCESS.matcher(job.output()); m.find(); ) {
      processes.add(Long.parseLong(m.group(1)));
    }
    assertTrue(processes.size() >= 3, job.output());
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
