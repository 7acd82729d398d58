package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Signals to one of several processes that stop on signals. */
class StopIT {
  private static final List<String> NONE = List.of();

  /** Its files are deleted, and the others lose it. */
  @ParameterizedTest
  @CsvSource({"TERM, 143", "USR1, 138"})
  void aSecondSignalEndsTheProcessWithoutTheOthers(String signal, int exitCode) throws Exception {
    List<Ranks.Result> job = Ranks.run(3, NONE, StopProgram.class, "apart", signal);
    assertEquals(exitCode, job.get(1).exitCode(), job::toString);
    for (int rank : new int[] {0, 2}) {
      job.get(rank).expect("left 0 files").expect("RankLostException: rank 1 (host=");
    }
    assertTrue(
        job.get(0).exitCode() == RankLostException.EXIT_CODE
            || job.get(2).exitCode() == RankLostException.EXIT_CODE,
        job::toString);
  }

  /** The program lives on, and another signal ends it as any other program. */
  @ParameterizedTest
  @CsvSource({"USR1, TERM, 143", "TERM, USR1, 138"})
  void withoutASyncASignalDoesWhatItDidBefore(String first, String next, int exitCode)
      throws Exception {
    Ranks.Result rank = Ranks.run(1, NONE, StopProgram.class, "after", first, next).get(0);
    assertEquals(exitCode, rank.exitCode(), rank.output());
    rank.expect("ended well");
    assertEquals(next.equals("TERM"), rank.output().contains("its hook has run"), rank.output());
  }

  /** As without stopOnSignal, also ranks that make no call. */
  @Test
  void anAbortEndsAllRanks() throws Exception {
    List<Ranks.Result> job = Ranks.run(3, NONE, StopProgram.class, "abort", "TERM");
    assertEquals(1, job.get(1).exitCode(), job::toString);
    for (int rank : new int[] {0, 2}) {
      assertEquals(143, job.get(rank).exitCode(), job::toString);
    }
  }

  /** A scheduler and the launcher may each send one. */
  @Test
  void theSameSignalAgainAtOnceIsNoSecondOne() throws Exception {
    for (Ranks.Result rank : Ranks.run(3, NONE, StopProgram.class, "at-once", "TERM")) {
      assertEquals(0, rank.exitCode(), rank.output());
      rank.expect("ended well");
    }
  }
}
