package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.gradientsync.core.backend.WaitingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How processes go on without others. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class SurvivorsIT {
  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({
    "3, shared, kill, 1",
    "3, tcp, kill, 0",
    "4, shared, kill, '0,2'",
    "4, tcp, kill, 3 0 1",
    "3, shared, throw, 0",
    "3, tcp, exit, 1",
    "3, tcp, halt, 1 0",
    "3, shared, return, 2",
    "3, tcp, term, 0"
  })
  void theOthersGoOn(int size, String reducer, String how, String lost) throws Exception {
    List<String> arguments = new ArrayList<>(List.of(how));
    List<String> times = List.of(lost.split(" "));
    arguments.addAll(times);
    List<Integer> gone = Stream.of(lost.split("[ ,]")).map(Integer::valueOf).toList();
    List<Ranks.Result> job =
        Ranks.run(
            size,
            List.of("-Dgradientsync.reducer=" + reducer),
            SurvivorProgram.class,
            arguments.toArray(String[]::new));
    int number = 0;
    for (int rank = 0; rank < size; rank++) {
      Ranks.Result result = job.get(rank);
      if (gone.contains(rank)) {
        assertEquals(how.equals("return"), result.exitCode() == 0, result.output());
      } else {
        result.expect(
            "rank " + rank + " has averaged as " + number++ + " of " + (size - gone.size()));
        assertEquals(0, result.exitCode(), result.output());
      }
    }
    assertNotEquals(0, number);
  }

  private Ranks start(int size, String how) throws Exception {
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < size; rank++) {
      Map<String, String> variables = ranks.variables(rank, size);
      variables.put(WaitingFile.VARIABLE, folder.resolve("rank-" + rank).toString());
      int seconds = how.equals("hang") ? 3 : 100;
      List<String> options =
          List.of("-Dgradientsync.timeout=" + seconds, "-Dgradientsync.reports=off");
      ranks.start(variables, options, SurvivorProgram.class, how, "1");
    }
    return ranks;
  }

  /** Here the test is the launcher. */
  @Test
  void aLauncherLearnsWhichProcessHangs() throws Exception {
    Ranks ranks = start(3, "hang");
    Path left = WaitingFile.left(folder.resolve("rank-2"));
    for (int i = 0; i < 600 && !(Files.exists(left) && Files.size(left) > 0); i++) {
      Thread.sleep(100);
    }
    long process = Long.parseLong(Files.readString(left).strip());
    assertTrue(ProcessHandle.of(process).orElseThrow().destroyForcibly());
    List<Ranks.Result> job = ranks.await();
    assertEquals(128 + 9, job.get(1).exitCode(), job::toString);
    job.get(0).expect("rank 0 has averaged as 0 of 2");
    job.get(2).expect("rank 2 has averaged as 1 of 2");
  }

  /** Of many ranks, not all hear from it. */
  @ParameterizedTest
  @ValueSource(ints = {3, 18})
  void oneThatHasLeftAndStillRunsDoesNotHang(int size) throws Exception {
    for (Ranks.Result rank : start(size, "linger").await()) {
      assertEquals(0, rank.exitCode(), rank.output());
    }
    for (int rank = 0; rank < size; rank++) {
      assertFalse(Files.exists(WaitingFile.left(folder.resolve("rank-" + rank))));
    }
  }
}
