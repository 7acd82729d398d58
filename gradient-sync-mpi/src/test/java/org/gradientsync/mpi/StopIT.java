package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Stops training by signals to ranks and launchers. */
class StopIT {
  private static final List<String> NONE = List.of();
  private static final Pattern STOPPED =
      Pattern.compile("(?:rank \\d+ stopped|saved) after (\\d+) steps\\.");

  @ParameterizedTest
  @CsvSource({"self, TERM", "self, USR1", "launcher, USR1"})
  void processesStopAfterTheSameStep(String target, String signal) throws Exception {
    requireStopped(3, Mpirun.run(3, NONE, StopPrograms.class, "processes", target, signal, "once"));
  }

  @ParameterizedTest
  @CsvSource({"TERM", "USR1"})
  void threadsStopAfterTheSameStep(String signal) throws Exception {
    requireStopped(3, Mpirun.alone(NONE, StopPrograms.class, "threads", "self", signal, "once"));
  }

  /** All ranks have stopped after the same step, rank 0 has saved, and the job ended well. */
  static void requireStopped(int ranks, Mpirun.Result job) {
    assertEquals(0, job.exitCode(), job.output());
    List<String> steps =
        STOPPED.matcher(job.output()).results().map(found -> found.group(1)).toList();
    assertEquals(ranks + 1, steps.size(), job.output());
    assertEquals(1, steps.stream().distinct().count(), job.output());
    job.expect("ended well");
  }

  @ParameterizedTest
  @CsvSource({"TERM, 143", "USR1, 138"})
  void aSecondSignalEndsTheProcess(String signal, int exitCode) throws Exception {
    Mpirun.Result job = Mpirun.alone(NONE, StopPrograms.class, "threads", "self", signal, "twice");
    assertEquals(exitCode, job.exitCode(), job.output());
    job.expect("the next signal ends this process at once");
  }

  /** Then {@code mpirun} ends the others. */
  @ParameterizedTest
  @CsvSource({"TERM, 143", "USR1, 138"})
  void aSecondSignalEndsTheJob(String signal, int exitCode) throws Exception {
    Mpirun.Result job =
        Mpirun.run(3, NONE, StopPrograms.class, "processes", "self", signal, "twice");
    assertEquals(exitCode, job.exitCode(), job.output());
    assertEquals(List.of(), SharedFiles.leftBy(SharedFiles.processes(job, 1)));
  }

  /** Without {@code stopOnSignal} nothing has changed: see {@link JobEndIT}. */
  @Test
  void aJvmThatLeavesSignalsAloneIsRefused() throws Exception {
    Mpirun.Result job =
        Mpirun.alone(List.of("-Xrs"), StopPrograms.class, "processes", "self", "TERM", "once");
    assertEquals(1, job.exitCode(), job.output());
    job.expect("cannot stop on a signal: signal=SIGTERM: ").expect("start java without -Xrs");
  }
}
