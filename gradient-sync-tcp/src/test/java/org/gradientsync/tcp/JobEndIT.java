package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests how jobs of processes start and end, with and without errors. */
class JobEndIT {
  private static final List<String> MESSAGES = List.of("-Dgradientsync.reducer=tcp");

  private static void requireMatch(Ranks.Result rank, String expression) {
    assertTrue(
        rank.output().lines().anyMatch(line -> line.matches(".*" + expression + ".*")),
        () -> "no '" + expression + "' in the output:\n" + rank.output());
  }

  @Test
  void ranksThatEndWithoutCloseEndTogether() throws Exception {
    for (Ranks.Result rank : Ranks.run(3, MESSAGES, Programs.class, "leave")) {
      assertEquals(0, rank.exitCode(), rank.output());
    }
  }

  @Test
  void anUncaughtExceptionEndsAllRanks() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, MESSAGES, Programs.class, "throw");
    assertEquals(1, job.get(1).exitCode(), job.get(1).output());
    job.get(1).expect("rank 1 ends the job").expect("the data ran out");
    assertTrue(job.get(0).exitCode() != 0 && job.get(2).exitCode() != 0, job::toString);
    job.get(0).expect("the data ran out");
  }

  @Test
  void aKilledRankIsNamed() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, MESSAGES, Programs.class, "kill");
    assertEquals(128 + 9, job.get(1).exitCode());
    for (int rank : new int[] {0, 2}) {
      requireMatch(job.get(rank), "rank 1 \\(host=[^,]+, process=\\d+\\) has died");
    }
    assertTrue(
        job.get(0).exitCode() == RankLostException.EXIT_CODE
            || job.get(2).exitCode() == RankLostException.EXIT_CODE,
        job::toString);
  }

  @Test
  void aRankThatExitsIsNamedAndKeepsItsCode() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, MESSAGES, Programs.class, "exit");
    assertEquals(3, job.get(1).exitCode(), job.get(1).output());
    requireMatch(job.get(0), "rank 1 .* has left: its program called System.exit");
    requireMatch(job.get(2), "rank 1 .* has left: its program called System.exit");
  }

  @Test
  void aRankThatASignalEndsIsNamedAndKeepsItsCode() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, MESSAGES, Programs.class, "signal");
    assertEquals(128 + 15, job.get(1).exitCode(), job.get(1).output());
    requireMatch(job.get(0), "rank 1 .* has left: its process is shutting down after a signal");
    requireMatch(job.get(2), "rank 1 .* has left: its process is shutting down after a signal");
  }

  @Test
  void aRankThatEndsEarlyIsNamed() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, MESSAGES, Programs.class, "return");
    requireMatch(job.get(0), "rank 1 .* has left: it closed its side or ended");
    assertTrue(job.get(0).exitCode() != 0 && job.get(2).exitCode() != 0, job::toString);
  }

  private static String failure(Map<String, String> changes, String... dropped) throws Exception {
    Ranks ranks = Ranks.prepare();
    Map<String, String> variables = ranks.variables(0, 2);
    variables.putAll(changes);
    variables.keySet().removeAll(List.of(dropped));
    ranks.start(variables, List.of(), Programs.class, "unavailable");
    return ranks.await().get(0).expect("caught ").output();
  }

  @Test
  void settingsWinOverVariablesOfAnotherJob() throws Exception {
    Ranks ranks = Ranks.prepare();
    ranks.start(ranks.variables(1, 2), List.of(), Programs.class, "by-settings");
    ranks.await().get(0).expect("has settings of 1");
  }

  @Test
  void variablesThatAreMissingOrWrongAreNamed() throws Exception {
    requireText(failure(Map.of(), "MASTER_PORT"), "not set: MASTER_PORT");
    requireText(failure(Map.of("RANK", "two")), "not a number from 0: RANK=two");
    requireText(failure(Map.of("RANK", "2")), "no such rank: RANK=2, WORLD_SIZE=2");
    requireText(failure(Map.of("MASTER_PORT", "70000")), "from 1 to 65535: MASTER_PORT=70000");
    requireText(
        failure(Map.of("MASTER_ADDR", "192.0.2.1"), "GRADIENTSYNC_SECRET"),
        "set GRADIENTSYNC_SECRET");
  }

  @Test
  void aRankWithoutFileDescriptorsSaysSo() throws Exception {
    for (int rank = 0; rank < 2; rank++) {
      Ranks ranks = Ranks.prepare();
      List<String> command =
          new ArrayList<>(List.of("sh", "-c", "ulimit -n 150; exec \"$@\"", "sh"));
      command.addAll(Ranks.command(List.of("-XX:-MaxFDLimit"), Programs.class, "exhausted"));
      ranks.start(ranks.variables(rank, 2), command);
      Ranks.Result result = ranks.await().get(0);
      requireText(result.output(), "caught rank " + rank + " has no file descriptors left: ");
      requireText(result.output(), "raise the limit by ulimit -n");
    }
  }

  @Test
  void differentVersionsAreNamed() throws Exception {
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 2; rank++) {
      ranks.start(ranks.variables(rank, 2), List.of(), Programs.class, "of-version", "0.1." + rank);
    }
    for (Ranks.Result rank : ranks.await()) {
      requireMatch(
          rank,
          "caught the ranks have different versions of gradient-sync-tcp: rank 0 has 0.1.0, rank 1"
              + " \\(.*\\) has 0.1.1; use one version on all ranks.*");
    }
  }

  @Test
  void localNumbersThatAreNotThoseOfTheNodeAreWarnedOf() throws Exception {
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 2; rank++) {
      Map<String, String> variables = ranks.variables(rank, 2);
      variables.put("LOCAL_RANK", "0");
      variables.put("LOCAL_WORLD_SIZE", rank == 0 ? "2" : "1");
      ranks.start(variables, List.of(), Programs.class, "average");
    }
    List<Ranks.Result> job = ranks.await();
    job.forEach(rank -> rank.expect(" of 2: shared, average 0.5"));
    assertFalse(job.get(0).output().contains("differs"), job::toString);
    job.get(1).expect("local rank differs: rank=1, localRank=1, LOCAL_RANK=0; taking localRank");
    job.get(1)
        .expect(
            "number of local ranks differs: rank=1, localSize=2, LOCAL_WORLD_SIZE=1; taking"
                + " localSize");
  }

  /** And the secret is in no output, at the level debug, and in no report. */
  @Test
  void oneSummaryHasAStuckAndAKilledRank(@TempDir Path reports) throws Exception {
    String secret = "5ecret-of-this-test";
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 3; rank++) {
      Map<String, String> variables = ranks.variables(rank, 3);
      variables.put("GRADIENTSYNC_SECRET", secret);
      List<String> options =
          List.of(
              "-Dgradientsync.reports=" + reports,
              "-Dgradientsync.tcp.secret=" + secret,
              "-Dgradientsync.tcp.secrets=" + secret, // a wrong name is warned of
              "-Dorg.slf4j.simpleLogger.defaultLogLevel=debug");
      ranks.start(variables, options, Programs.class, "stick-and-kill");
    }
    List<Ranks.Result> job = ranks.await();
    String name = "rank %d \\(host=[^,]+, process=\\d+\\)";
    requireMatch(
        job.get(0),
        "timed out: " + name.formatted(1) + " and " + name.formatted(2) + " did not join in time");
    for (Ranks.Result rank : job) {
      requireText(rank.output(), "(secret)");
      assertFalse(rank.output().contains(secret), rank.output());
    }
    List<Path> files;
    try (Stream<Path> all = Files.walk(reports)) {
      files = all.filter(Files::isRegularFile).toList();
    }
    assertTrue(files.size() > 3, files::toString);
    for (Path file : files) {
      String report = Files.readString(file);
      if (file.endsWith("summary.txt")) {
        String stuck = " is in no call since .*Programs.loseTwo.*\n";
        assertTrue(
            Pattern.matches(
                name.formatted(0)
                    + " timed out: waits for rank 1 since .*\n"
                    + name.formatted(1)
                    + stuck
                    + name.formatted(2)
                    + " has died\\s*",
                report),
            report);
      } else if (!report.contains(" has died")) {
        requireText(report, "gradientsync.tcp.secret=(secret)");
      }
      assertFalse(report.contains(secret), report);
    }
  }

  private static void requireText(String output, String text) {
    assertTrue(output.contains(text), () -> "no '" + text + "' in the output:\n" + output);
  }

  @Test
  void ipVersion6Works() throws Exception {
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 2; rank++) {
      Map<String, String> variables = ranks.variables(rank, 2);
      variables.put("MASTER_ADDR", "::1");
      ranks.start(variables, MESSAGES, Programs.class, "average");
    }
    ranks.await().forEach(rank -> rank.expect("of 2: tcp, average 0.5"));
  }
}
