package org.gradientsync.mpi;

import static org.gradientsync.mpi.LostRankIT.NAME;
import static org.gradientsync.mpi.LostRankIT.lastLines;
import static org.gradientsync.mpi.LostRankIT.requireMatch;
import static org.gradientsync.mpi.LostRankIT.requireNothingLeft;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@link LostRankIT} with ranks that have a GPU each: GPUs must be free afterwards, too. */
class LostRankOnGpu {
  private static final long MIB_OF_NOISE = 64;

  @TempDir Path reports;
  private List<Long> before;

  @BeforeEach
  void lookAtGpus() throws Exception {
    before = memoryUsed();
  }

  @AfterEach
  void nothingIsLeftOnGpus() throws Exception {
    List<Long> after = memoryUsed();
    for (int i = 0; i < 50 && max(after) > max(before) + MIB_OF_NOISE; i++) {
      Thread.sleep(200); // the driver clears up behind what was killed
      after = memoryUsed();
    }
    for (int gpu = 0; gpu < after.size(); gpu++) {
      assertTrue(after.get(gpu) <= before.get(gpu) + MIB_OF_NOISE, before + " MiB, then " + after);
    }
  }

  @ParameterizedTest
  @CsvSource({"before, peer", "during, peer", "between, peer", "during, host-staged"})
  void aKilledRankIsNamed(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("kill", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job.output(), NAME + " has died, .*waited=");
    requireMatch(lastLines(job), "process rank 1 .* exited on signal 9");
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"before, peer", "during, peer", "between, peer", "during, host-staged"})
  void aStoppedRankIsNamedAfterTheTimeout(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("stop", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job.output(), "timed out: .*waited=");
    requireMatch(job.output(), "what each of \\d ranks was doing");
    requireMatch(job.output(), "\n  rank 1 has written no report");
    requireMatch(lastLines(job), "(Exception|ended by rank \\d .*): timed out: ");
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"before, peer", "between, peer", "between, host-staged"})
  void aRankThatIsStuckInItsProgramSaysWhere(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("stick", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job.output(), "WARN .*has waited PT1S for .*" + NAME);
    requireMatch(job.output(), "timed out: .*" + NAME + ".* did not join in time");
    requireMatch(job.output(), "\n  rank 1 .*is in no call since .*stickInUserCode");
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"before, peer", "between, peer", "between, host-staged"})
  void anExceptionIsTheLastThingThatIsRead(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("throw", phase, reducer);
    assertNotEquals(0, job.exitCode());
    requireMatch(job.output(), "java.lang.IllegalStateException: the data ran out\n\tat ");
    requireMatch(
        lastLines(job), "ended by " + NAME + ": .*IllegalStateException: the data ran out");
    requireNothingLeft(job);
  }

  @ParameterizedTest
  @CsvSource({"between, peer", "between, host-staged"})
  void aLateRankIsAWarning(String phase, String reducer) throws Exception {
    Mpirun.Result job = lose("late", phase, reducer);
    assertEquals(0, job.exitCode(), job.output());
    requireMatch(job.output(), "WARN .*has waited PT1S for .*" + NAME);
    job.expect("rank 0 has come to the end").expect("rank 1 has come to the end");
    requireNothingLeft(job);
  }

  private Mpirun.Result lose(String manner, String phase, String reducer) throws Exception {
    int ranks = Math.min(3, before.size());
    String folder = reports.toString();
    return Mpirun.run(ranks, List.of(), LosingRanks.class, manner, phase, reducer, folder, "cuda");
  }

  private static long max(List<Long> values) {
    return values.stream().mapToLong(Long::longValue).max().orElse(0);
  }

  /** Of each GPU, in MiB, when it is at rest. */
  private static List<Long> memoryUsed() throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
            .redirectErrorStream(true)
            .start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), text);
    return text.lines().map(line -> Long.parseLong(line.strip())).toList();
  }
}
