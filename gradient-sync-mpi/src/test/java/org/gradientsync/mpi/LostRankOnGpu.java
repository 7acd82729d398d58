package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
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

/** Repeats {@link LostRankIT} with a GPU per rank. The GPUs must be free afterwards, too. */
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
      Thread.sleep(200); // the driver cleans up after killed processes
      after = memoryUsed();
    }
    for (int gpu = 0; gpu < after.size(); gpu++) {
      assertTrue(after.get(gpu) <= before.get(gpu) + MIB_OF_NOISE, before + " MiB, then " + after);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "kill, before, peer",
    "kill, during, peer",
    "kill, between, peer",
    "kill, during, host-staged",
    "stop, before, peer",
    "stop, during, peer",
    "stop, between, peer",
    "stop, during, host-staged",
    "stick, before, peer",
    "stick, between, peer",
    "stick, between, host-staged",
    "throw, before, peer",
    "throw, between, peer",
    "throw, between, host-staged",
    "late, between, peer",
    "late, between, host-staged"
  })
  void theOthersSayWhatHappened(String manner, String phase, String reducer) throws Exception {
    LostRank.lose(Math.min(3, before.size()), "cuda", manner, phase, reducer, reports);
  }

  private static long max(List<Long> values) {
    return values.stream().mapToLong(Long::longValue).max().orElse(0);
  }

  /** Returns the memory in use on each idle GPU, in MiB. */
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
