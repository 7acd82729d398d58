package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Tests ranks on a system that has no {@code /proc} and no {@code /dev/shm}, as macOS and Windows,
 * made of this one by mounts.
 */
@Tag("nodes")
class HiddenFoldersIT {
  private static final String HIDE =
      "mount -t tmpfs -o ro none /dev/shm && mount -t tmpfs -o ro none /proc && exec \"$@\"";

  private static List<Ranks.Result> run(String program) throws Exception {
    Path jdk = Path.of(System.getProperty("java.home"));
    Ranks ranks = Ranks.prepare();
    for (int rank = 0; rank < 3; rank++) {
      Map<String, String> variables = ranks.variables(rank, 3);
      // Without /proc/self/exe, java does not find its own libraries.
      variables.put("LD_LIBRARY_PATH", jdk.resolve("lib") + ":" + jdk.resolve("lib/server"));
      List<String> command = new ArrayList<>(List.of("unshare", "--mount", "sh", "-c", HIDE, "sh"));
      command.addAll(Ranks.command(List.of(), Programs.class, program));
      ranks.start(variables, command);
    }
    return ranks.await();
  }

  @Test
  void ranksAverageByMessages() throws Exception {
    List<Ranks.Result> job = run("average-much");
    for (int rank = 0; rank < 3; rank++) {
      job.get(rank).expect("rank " + rank + " of 3, local " + rank + " of 3: tcp, average 1.0");
      assertEquals(0, job.get(rank).exitCode());
    }
    job.get(0).expect("faster ones not available: {shared=/dev/shm is not there or not writable");
  }

  @Test
  void aLostRankIsNamed() throws Exception {
    List<Ranks.Result> job = run("kill");
    for (int rank : new int[] {0, 2}) {
      String output = job.get(rank).output();
      assertTrue(output.matches("(?s).*rank 1 \\(host=[^,]+, process=\\d+\\) has died.*"), output);
    }
  }
}
