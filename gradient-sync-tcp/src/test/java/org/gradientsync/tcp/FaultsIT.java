package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests fault injection in ranks of jobs over TCP, which move data by messages or share memory. */
class FaultsIT {
  private static List<Ranks.Result> run(String reducer, String fault) throws Exception {
    return Ranks.run(2, List.of("-Dgradientsync.reducer=" + reducer), FaultPrograms.class, fault);
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shared"})
  void aRankThatDiesIsNamed(String reducer) throws Exception {
    List<Ranks.Result> job = run(reducer, "die");
    assertEquals(128 + 9, job.get(1).exitCode(), job.get(1).output());
    assertNotEquals(0, job.get(0).exitCode());
    job.get(0).expect("rank 1 (host=").expect("has died");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shared"})
  void aRankThatDoesNotComeIsNamed(String reducer) throws Exception {
    List<Ranks.Result> job = run(reducer, "drop");
    assertNotEquals(0, job.get(0).exitCode());
    job.get(0).expect("rank 1 (host=").expect(") did not join in time");
    job.get(1).expect("dropped by 1");
    assertFalse(job.get(0).output().contains("dropped by 0"), job.get(0).output());
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shared"})
  void aCallWithAnotherCountIsNamedOnBothRanks(String reducer) throws Exception {
    for (Ranks.Result rank : run(reducer, "mismatch")) {
      assertNotEquals(0, rank.exitCode());
      rank.expect("rank 0: allReduce(FLOAT32[100000]").expect("rank 1: allReduce(FLOAT32[99999]");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "shared"})
  void aLateRankIsAwaited(String reducer) throws Exception {
    for (Ranks.Result rank : run(reducer, "delay")) {
      assertEquals(0, rank.exitCode(), rank.output());
      rank.expect("reached");
    }
  }
}
