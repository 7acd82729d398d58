package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.File;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Tests fault injection in ranks that are processes, and that it leaves nothing behind. */
class FaultsIT {
  private static final int RANKS = 2;
  private static final Pattern PROCESS = Pattern.compile("process=(\\d+)\\.");

  private static Mpirun.Result run(String fault) throws Exception {
    Mpirun.Result job = Mpirun.run(RANKS, List.of(), FaultPrograms.class, fault);
    int processes = 0;
    for (Matcher m = PROCESS.matcher(job.output()); m.find(); processes++) {
      // mpirun may not yet have reaped the process.
      Optional<ProcessHandle> process = ProcessHandle.of(Long.parseLong(m.group(1)));
      if (process.isPresent()) {
        process.get().onExit().get(1, TimeUnit.MINUTES);
      }
    }
    assertEquals(RANKS, processes, job.output());
    return job;
  }

  private static List<File> leftInSharedMemory() {
    File[] left =
        new File("/dev/shm")
            .listFiles(
                f ->
                    f.getName().startsWith("gradient-sync-")
                        && ProcessHandle.of(Long.parseLong(f.getName().split("-")[3])).isEmpty());
    return left == null ? List.of() : List.of(left);
  }

  @Test
  void aRankThatDiesEndsTheJob() throws Exception {
    Mpirun.Result job = run("die");
    assertNotEquals(0, job.exitCode());
    job.expect("signal 9"); // how mpirun reports kill -9
    assertFalse(job.output().contains("reached"), job.output());
    // The next process deletes what a killed one left in shared memory.
    assertEquals(0, run("late").exitCode());
    assertEquals(List.of(), leftInSharedMemory());
  }

  @Test
  void aRankThatDoesNotComeIsNamedAndEndsTheJob() throws Exception {
    Mpirun.Result job = run("drop");
    assertNotEquals(0, job.exitCode());
    job.expect("dropped by 1").expect("rank 1 (host=").expect(") did not join in time");
    assertFalse(job.output().contains("dropped by 0"), job.output());
    assertEquals(0, run("late").exitCode());
    assertEquals(List.of(), leftInSharedMemory());
  }

  @Test
  void onlyTheRanksOwnFaultsHaveToBeReached() throws Exception {
    Mpirun.Result job = run("never");
    assertNotEquals(0, job.exitCode());
    job.expect("planned faults were never reached: onRank(1).atCall(4).drop()");
    // One rank throws it. The other one may or may not repeat it, depending on which ends first.
    assertEquals(2, job.output().split("\njava.lang.AssertionError: planned", -1).length);
  }
}
