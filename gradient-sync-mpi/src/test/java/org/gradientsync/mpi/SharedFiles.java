package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The files in shared memory of a job's processes. Other jobs may run at the same time. */
final class SharedFiles {
  private static final Pattern PROCESS = Pattern.compile("process=(\\d+)\\.");

  private SharedFiles() {}

  /** Returns the processes of a job each of whose ranks has printed its own. */
  static Set<Long> processes(Mpirun.Result job, int ranks) {
    Set<Long> processes = new HashSet<>();
    for (Matcher m = PROCESS.matcher(job.output()); m.find(); ) {
      processes.add(Long.parseLong(m.group(1)));
    }
    assertEquals(ranks, processes.size(), job::output);
    return processes;
  }

  /** Returns the files that some processes have left. */
  static List<File> leftBy(Set<Long> processes) {
    File[] left =
        new File("/dev/shm")
            .listFiles(
                f -> {
                  if (!f.getName().startsWith("gradient-sync-")) {
                    return false;
                  }
                  long process = Long.parseLong(f.getName().split("-")[3]);
                  return processes.contains(process) && ProcessHandle.of(process).isEmpty();
                });
    return left == null ? List.of() : List.of(left);
  }
}
