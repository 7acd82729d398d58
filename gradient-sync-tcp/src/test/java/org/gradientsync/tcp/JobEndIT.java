package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Test;

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
  void variablesThatAreMissingOrWrongAreNamed() throws Exception {
    requireText(failure(Map.of(), "MASTER_PORT"), "not set: MASTER_PORT");
    requireText(failure(Map.of("RANK", "two")), "not a number from 0: RANK=two");
    requireText(failure(Map.of("RANK", "2")), "no such rank: RANK=2, WORLD_SIZE=2");
    requireText(failure(Map.of("MASTER_PORT", "70000")), "from 1 to 65535: MASTER_PORT=70000");
    requireText(
        failure(Map.of("MASTER_ADDR", "192.0.2.1"), "GRADIENTSYNC_SECRET"),
        "set GRADIENTSYNC_SECRET");
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
