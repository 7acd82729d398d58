package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Test;

/** Tests how jobs start and end, with and without errors. */
class JobEndIT {
  private static final List<String> NONE = List.of();
  private static final String EXITED =
      "gradient-sync: rank 1 ends the job: its program called System.exit while other ranks needed"
          + " it";

  private static String lastOwnLine(Mpirun.Result job) {
    return job.output()
        .lines()
        .filter(line -> line.startsWith("gradient-sync: "))
        .reduce("", (line, next) -> next);
  }

  @Test
  void anUncaughtExceptionEndsTheJobAndIsSeen() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "throw");
    assertNotEquals(0, job.exitCode());
    job.expect("the data ran out").expect("rank 1 ends the job");
  }

  @Test
  void aJvmThatExitsWithoutCloseEndsCleanly() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "leave");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("left 0").expect("left 1");
  }

  @Test
  void aRankThatExitsEarlyIsNamed() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "exit");
    assertEquals(1, job.exitCode());
    job.expect("rank 1 (host=").expect(") has left: its program called System.exit");
    assertEquals(EXITED, lastOwnLine(job), job.output());
  }

  @Test
  void aRankThatASignalEndsSaysSo() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "signal");
    assertEquals(RankLostException.EXIT_CODE, job.exitCode(), job.output());
    job.expect("rank 1 (host=").expect(") has left: its process is shutting down after a signal");
  }

  /** The job ends with the program's code. */
  @Test
  void aRankThatExitsBesideItsCallsIsNamed() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "exit-beside");
    assertEquals(3, job.exitCode(), job.output());
    assertEquals(EXITED, lastOwnLine(job), job.output());
    job.expect("rank 1 (host=")
        .expect(") has left")
        .expect("rank 1 ends while main makes calls: ")
        .expect("this process is ending: rank=1, in=allReduce(FLOAT32[1000], AVERAGE)");
  }

  @Test
  void afterASignalCallsGoOnWhileAHookOfTheProgramRuns() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "signal-and-save");
    assertEquals(128 + 15, job.exitCode(), job.output()); // the JVM's code after SIGTERM
    job.expect("saved").expect("stopped 0").expect("stopped 1").expect("stopped 2");
    assertEquals("", lastOwnLine(job), job.output());
  }

  @Test
  void ranksThatAreThreadsGoOnAfterASignal() throws Exception {
    Mpirun.Result job = Mpirun.alone(NONE, Programs.class, "threads-and-save");
    assertEquals(128 + 15, job.exitCode(), job.output());
    job.expect("saved").expect("stopped 0").expect("stopped 1").expect("stopped 2");
  }

  @Test
  void aHookOfTheProgramThatGoesOnForEverIsNotWaitedForForEver() throws Exception {
    List<String> grace = List.of("-Dgradientsync.shutdown.grace=1");
    Mpirun.Result job = Mpirun.run(3, grace, Programs.class, "signal-and-go-on");
    assertEquals(RankLostException.EXIT_CODE, job.exitCode(), job.output());
    job.expect(") has left: its process is shutting down after a signal");
  }

  @Test
  void ranksThatAreThreadsOfEachProcessAreWarnedOf() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "threads");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("of 2").expect("LocalRanks.run(2) in each of 2 processes that mpirun started");
  }

  @Test
  void aLateRankIsNamed() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "late");
    assertEquals(RankLostException.EXIT_CODE, job.exitCode());
    job.expect("timed out: rank 1 (host=")
        .expect(") did not join in time")
        .expect("allReduce(FLOAT32[1000], AVERAGE)");
  }

  @Test
  void timeInWhichTheWholeJobIsSuspendedDoesNotCount() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "suspended");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("averaged 0").expect("averaged 1");
  }

  @Test
  void aKilledRankEndsTheJobAndItsMemoryIsGivenBackByTheNext() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "kill");
    assertNotEquals(0, job.exitCode());
    Mpirun.Result next = Mpirun.run(2, NONE, Programs.class, "leave");
    assertEquals(0, next.exitCode());
    assertEquals(List.of(), SharedFiles.leftBy(SharedFiles.processes(job, 2)));
    assertEquals(List.of(), SharedFiles.leftBy(SharedFiles.processes(next, 2)));
  }

  @Test
  void aLossThatIsCaughtDoesNotHangTheEnd() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "caught");
    assertNotEquals(0, job.exitCode());
    job.expect("caught timed out: rank 1 (host=").expect(") did not join in time");
  }

  @Test
  void aRankThatHasMoreToDoAtTheEndIsNamedAndWaitedFor() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "stay-a-while");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("rank 0 has come to its end and waited 1 s for rank 1 (host=")
        .expect("; it ends the job after 4 min")
        .expect("saved");
    assertFalse(job.output().contains("rank 2 has come to its end"), job.output());
  }

  @Test
  void aRankThatGoesOnForEverAtTheEndIsNamedAndEnded() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "stay");
    assertEquals(RankLostException.EXIT_CODE, job.exitCode());
    job.expect("rank 0 has come to its end and waited 1 s for rank 1 (host=")
        .expect("rank 0 ends the job: it has come to its end and waited 6 s for rank 1 (host=")
        .expect("raise gradientsync.timeout, which is 6 s");
    assertFalse(job.output().contains("saved"), job.output());
  }

  @Test
  void aRankThatNeverCreatesASyncIsNotWaitedForForEver() throws Exception {
    Mpirun.Result job = Mpirun.run(2, NONE, Programs.class, "never");
    assertEquals(RankLostException.EXIT_CODE, job.exitCode(), job.output());
    job.expect("not all ranks created a sync: rank 1 (host=").expect(") has not come");
  }

  @Test
  void anMpiThatTheProgramStartedIsJoinedAndLeftToIt() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "attach");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("value 1").expect("finalized false").expect("sum 3");
    assertFalse(job.output().contains("failed"), job.output());
  }

  @Test
  void aMissingLibraryIsAnExceptionNotTheEndOfTheJvm() throws Exception {
    Mpirun.Result job =
        Mpirun.run(2, List.of("-Djava.library.path=/nowhere"), Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("caught Open MPI's Java bindings cannot be used")
        .expect("libmpi_java.so is not in java.library.path=/nowhere");
  }

  @Test
  void bindingsThatAreAskedForButMissingAreAnException() throws Exception {
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Dgradientsync.mpi.binding=java");
    Mpirun.Result job = Mpirun.run(2, options, Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("caught Open MPI's Java bindings cannot be used: mpi.jar is not on the class path");
  }

  @Test
  void aLibraryThatIsNoMpiIsAnException() throws Exception {
    List<String> options = List.of("-Dgradientsync.mpi.binding=/nowhere/libmpi.so.40");
    Mpirun.Result job = Mpirun.run(2, options, Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("caught this MPI does not load: gradientsync.mpi.binding=/nowhere/libmpi.so.40");
  }

  @Test
  void withoutMpirunThereIsOneRank() throws Exception {
    Mpirun.Result job = Mpirun.alone(NONE, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 1");
    assertFalse(job.output().contains("launcher=mpi"), job.output());
  }

  @Test
  void localRanksCountOnTheNode() throws Exception {
    Mpirun.Result job = Mpirun.run(3, NONE, Programs.class, "local");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("local 0 of 3").expect("local 1 of 3").expect("local 2 of 3");
  }

  @Test
  void reducersThatCannotBeHadAreRefusedByName() throws Exception {
    Mpirun.Result job =
        Mpirun.run(2, List.of("-Dgradientsync.reducer=local"), Programs.class, "unavailable");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("reducer local is not available").expect("not threads of one JVM");
    Mpirun.run(2, List.of("-Dgradientsync.reducer=warp"), Programs.class, "unavailable")
        .expect("no such reducer: reducer=warp");
  }
}
