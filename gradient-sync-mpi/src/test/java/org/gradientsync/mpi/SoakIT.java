package org.gradientsync.mpi;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.test.contract.RankJvm;
import org.junit.jupiter.api.DynamicNode;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * Makes random calls for some time in the ranks of a real mpirun job. {@code -Dsoak.seconds=3600}
 * runs each reducer for an hour, {@code -Dsoak.seed=...} repeats a run.
 */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class SoakIT {
  static final int SECONDS = 6;

  /**
   * Makes malloc return freed memory to the system at once. By default the C library keeps some
   * hundred KB for each sync for a while, which is not a leak.
   */
  private static final Map<String, String> PLAIN_MALLOC =
      Map.of(
          "MALLOC_ARENA_MAX", "1",
          "MALLOC_MMAP_THRESHOLD_", "65536",
          "MALLOC_TRIM_THRESHOLD_", "131072");

  private static final String[] PROPERTIES = {"soak.seconds", "soak.seed"};

  @TempDir Path folder;

  /** In shared memory only if {@code soak.seconds} is set: ranks over TCP do that in each build. */
  @TestFactory
  List<DynamicNode> randomCallsLeakNothing() throws IOException, InterruptedException {
    // The heap has its full size from the start, so that growth has other causes. It is small, so
    // that it is collected often.
    List<String> options =
        new ArrayList<>(
            List.of("-Xms192m", "-Xmx192m", "-XX:+AlwaysPreTouch", "-XX:MaxDirectMemorySize=1g"));
    boolean isLong = Long.getLong("soak.seconds") != null;
    if (isLong) {
      options.add(RankJvm.OPTIMIZED); // otherwise compiling would take most of the time
    }
    for (String property : PROPERTIES) {
      String value = System.getProperty(property);
      if (value != null) {
        options.add("-D" + property + "=" + value);
      }
    }
    long seconds = 240 + 2 * Long.getLong("soak.seconds", SECONDS);
    return List.of(
        RankJob.run(
            folder,
            4,
            seconds,
            PLAIN_MALLOC,
            options,
            isLong ? List.of(MpiSoak.class, SharedSoak.class) : List.of(MpiSoak.class)));
  }
}
