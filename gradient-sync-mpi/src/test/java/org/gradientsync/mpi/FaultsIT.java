package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests fault injection in ranks that are processes, and that it leaves nothing behind. */
class FaultsIT {
  private static final int RANKS = 2;

  private static Mpirun.Result run(String fault) throws Exception {
    Mpirun.Result job = Mpirun.run(RANKS, List.of(), FaultPrograms.class, fault);
    for (long id : SharedFiles.processes(job, RANKS)) {
      // mpirun may not yet have reaped the process.
      Optional<ProcessHandle> process = ProcessHandle.of(id);
      if (process.isPresent()) {
        process.get().onExit().get(1, TimeUnit.MINUTES);
      }
    }
    return job;
  }

  /** Checks that a second job leaves no file of its own, nor of the first. */
  private static void requireNothingLeftAfterAnother(Mpirun.Result first) throws Exception {
    Mpirun.Result second = run("late");
    assertEquals(0, second.exitCode(), second.output());
    for (Mpirun.Result job : List.of(first, second)) {
      assertEquals(List.of(), SharedFiles.leftBy(SharedFiles.processes(job, RANKS)));
    }
  }

  @Test
  void aRankThatDiesEndsTheJob() throws Exception {
    Mpirun.Result job = run("die");
    assertNotEquals(0, job.exitCode());
    job.expect("signal 9"); // how mpirun reports kill -9
    assertFalse(job.output().contains("reached"), job.output());
    // The next process deletes what a killed one left in shared memory.
    requireNothingLeftAfterAnother(job);
  }

  @Test
  void aRankThatDoesNotComeIsNamedAndEndsTheJob() throws Exception {
    Mpirun.Result job = run("drop");
    assertNotEquals(0, job.exitCode());
    job.expect("dropped by 1").expect("rank 1 (host=").expect(") did not join in time");
    assertFalse(job.output().contains("dropped by 0"), job.output());
    requireNothingLeftAfterAnother(job);
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
