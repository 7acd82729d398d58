package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the gradient average with ranks as threads. */
class GradientAverageTest {
  private static final String PASS = "[PASS] Gradient averaging is correct.";
  private static final String PASS_ALL = "[PASS] Gradient averaging is correct on all ranks.";

  @Test
  void fourRanksPrintTheKnownAverages() {
    Run run = Run.of(new GradientAverage(), "--local=4", "--size=10000").exits(0);
    run.prints(
        "[Rank 0] World size = 4",
        "Number of ranks: 4",
        "Gradient vector length per rank: 10000",
        "Device: host memory",
        "avg_grad[0] = 1.500000",
        "avg_grad[5000] = 6.500000",
        "avg_grad[9999] = 11.499000",
        "expected[0] = 1.500000",
        "expected[5000] = 6.500000",
        "expected[9999] = 11.499000",
        PASS,
        PASS_ALL,
        "Performance:",
        "Demo complete.");
    run.printsLike("Communication: gradients averaged via reducer [-a-z]+, launcher local\\.");
    run.printsLike("  Compute time \\(CPU, first call\\): [0-9.]+ (us|ms|s)");
    run.printsLike("  Communication time \\([-a-z]+, end-to-end, first call\\): [0-9.]+ (us|ms|s)");
    run.printsLike("  Total time: [0-9.]+ (us|ms|s)");
    assertEquals("", run.err());
    assertFalse(run.out().contains("median"), run::toString);
  }

  static Stream<Arguments> typesAndRanks() {
    List<Arguments> all = new ArrayList<>();
    for (DataType type : DataType.values()) {
      for (int ranks = 2; type.isFloatingPoint() && ranks <= 4; ranks++) {
        all.add(Arguments.of(type, ranks));
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("typesAndRanks")
  void everyTypeAndSizeIsRight(DataType type, int ranks) {
    for (int size : new int[] {0, 1, 2, 3, 7, 1000, 65_535, 65_536, 65_537, 200_003}) {
      Run.of(new GradientAverage(), "--local=" + ranks, "--type=" + type, "--size=" + size)
          .exits(0)
          .prints("Gradient vector length per rank: " + size, PASS, PASS_ALL);
    }
  }

  @Test
  void emptyGradientHasNoSamples() {
    Run run = Run.of(new GradientAverage(), "--local=2", "--size=0").exits(0);
    run.prints(PASS, PASS_ALL);
    assertFalse(run.out().contains("avg_grad"), run::toString);
  }

  @Test
  void elementsAreSampledOnce() {
    Run run = Run.of(new GradientAverage(), "--local=2", "--size=1").exits(0);
    assertEquals(1, run.out().lines().filter(line -> line.contains("avg_grad[")).count());
  }

  @Test
  void typeMayBeWrittenInLowerCase() {
    Run.of(new GradientAverage(), "--local=2", "--type=bfloat16")
        .exits(0)
        .prints("Computation: BFLOAT16 gradients computed on the CPU.", PASS_ALL);
  }

  /** Counts its averages, and changes one element on one rank. */
  private static final class Spoiled extends GradientAverage {
    private final int spoiledRank;
    private final long spoiledIndex;
    private final List<Integer> averagedBy = new ArrayList<>();

    Spoiled(int rank, long index) {
      this.spoiledRank = rank;
      this.spoiledIndex = index;
    }

    @Override
    void average(GradientSync sync, DeviceBuffer buffer) {
      super.average(sync, buffer);
      synchronized (averagedBy) {
        averagedBy.add(sync.rank());
      }
      if (sync.rank() == spoiledRank) {
        float[] element = new float[1];
        DeviceBuffer one = buffer.slice(spoiledIndex, 1);
        one.copyTo(element);
        element[0] = Math.nextUp(element[0]);
        one.copyFrom(element);
      }
    }
  }

  @Test
  void severalIterationsAreTimedAfterOneThatIsNot() {
    Spoiled counting = new Spoiled(-1, 0);
    Run run = Run.of(counting, "--local=2", "--iterations=4", "--size=100").exits(0);
    run.prints(PASS_ALL);
    assertEquals(2 * (1 + 4), counting.averagedBy.size());
    assertEquals(2, run.out().lines().filter(line -> line.contains("median of 4")).count());
    assertFalse(run.out().contains("first call"), run::toString);

    Spoiled once = new Spoiled(-1, 0);
    Run.of(once, "--local=2", "--size=100").exits(0);
    assertEquals(2, once.averagedBy.size());
  }

  @ParameterizedTest
  @CsvSource({"0,0", "0,999", "1,0", "1,500", "2,999"})
  void oneWrongBitOnOneRankFailsOnAll(int rank, long index) {
    Run run = Run.of(new Spoiled(rank, index), "--local=3", "--size=1000").exits(1);
    run.complains("wrong average: rank=" + rank + ", wrong=1 of 1000, first wrong index=" + index);
    run.prints(
        rank == 0 ? "[FAIL] Gradient averaging is wrong." : PASS,
        "[FAIL] Gradient averaging is wrong on 1 of 3 ranks.");
    assertFalse(run.out().contains(PASS_ALL), run::toString);
  }

  @Test
  void ranksThatDoNotAverageFail() {
    GradientAverage lazy =
        new GradientAverage() {
          @Override
          void average(GradientSync sync, DeviceBuffer buffer) {
            // every rank keeps its own gradient
          }
        };
    // Except for rounding, rank 1's own gradient is the average of ranks 0, 1 and 2.
    Run run = Run.of(lazy, "--local=3", "--type=FLOAT64", "--size=1").exits(1);
    run.prints("[FAIL] Gradient averaging is wrong on 2 of 3 ranks.");
  }

  @Test
  void reducerCanBeChosen() {
    Run.of(new GradientAverage(), "--local=2", "--reducer=local")
        .exits(0)
        .prints("Communication: gradients averaged via reducer local, launcher local.", PASS_ALL);
  }

  @Test
  void unknownReducerIsNamedWithoutAStackTrace() {
    Run run = Run.of(new GradientAverage(), "--local=2", "--reducer=carrier-pigeon").exits(3);
    run.complainsInOneLine("no such reducer: reducer=carrier-pigeon");
  }

  @ParameterizedTest
  @EnumSource(names = {"INT32", "INT64"})
  void integersHaveNoAverage(DataType type) {
    Run.of(new GradientAverage(), "--local=2", "--type=" + type)
        .exits(2)
        .complainsInOneLine("integers have no average");
  }

  @Test
  void oneRankIsToldHowToHaveMore() {
    for (String[] args : new String[][] {{}, {"--local=1"}}) {
      Run.of(new GradientAverage(), args)
          .exits(2)
          .complainsInOneLine("run mpirun -np 2 examples/bin/gradient-average, or add --local 2.");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--size=-1",
        "--size=many",
        "--size=1.5",
        "--iterations=0",
        "--iterations=-3",
        "--type=FLOAT8"
      })
  void impossibleValuesAreBadUse(String option) {
    Run.of(new GradientAverage(), "--local=2", option)
        .exits(2)
        .complainsInOneLine(option.substring(0, option.indexOf('=')));
  }
}
