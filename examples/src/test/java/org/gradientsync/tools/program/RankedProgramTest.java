package org.gradientsync.tools.program;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.examples.DeviceSelection;
import org.gradientsync.examples.GradientAverage;
import org.gradientsync.examples.HaloExchange;
import org.gradientsync.examples.LinearRegression;
import org.gradientsync.examples.MatrixMultiply;
import org.gradientsync.examples.MonteCarloPi;
import org.gradientsync.examples.Run;
import org.gradientsync.examples.TrainHybrid;
import org.gradientsync.examples.TrainMlp;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.perf.CollectivesPerf;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.Command;

/** Tests what all programs have in common. */
class RankedProgramTest {
  static Stream<Supplier<RankedProgram>> programs() {
    return Stream.of(
        GradientAverage::new,
        MonteCarloPi::new,
        MatrixMultiply::new,
        LinearRegression::new,
        TrainMlp::new,
        TrainHybrid::new,
        HaloExchange::new,
        DeviceSelection::new,
        AllReducePerf::new,
        CollectivesPerf::new);
  }

  @ParameterizedTest
  @MethodSource("programs")
  void helpTellsOptionsAndExitCodes(Supplier<RankedProgram> program) {
    Run run = Run.of(program.get(), "--help").exits(0);
    assertTrue(run.out().contains("--local=RANKS"), run::toString);
    assertTrue(run.out().contains("Exit codes:"), run::toString);
    for (int code = 0; code <= 3; code++) {
      String start = "  " + code + "   ";
      assertTrue(run.out().lines().anyMatch(line -> line.startsWith(start)), run::toString);
    }
  }

  @ParameterizedTest
  @MethodSource("programs")
  void unknownOptionIsBadUse(Supplier<RankedProgram> program) {
    Run.of(program.get(), "--no-such-option")
        .exits(2)
        .complainsInOneLine("Unknown option: '--no-such-option'");
  }

  @ParameterizedTest
  @MethodSource("programs")
  void impossibleNumberOfRanksIsBadUse(Supplier<RankedProgram> program) {
    for (String ranks : List.of("0", "-1", "257")) {
      Run.of(program.get(), "--local", ranks)
          .exits(2)
          .complainsInOneLine("--local takes 1 to 256 ranks: --local " + ranks);
    }
    Run.of(program.get(), "--local", "many").exits(2).complainsInOneLine("'many' is not an int");
    Run.of(program.get(), "--local").exits(2).complains("--local");
  }

  @ParameterizedTest
  @MethodSource("programs")
  void deviceIsHostOrCuda(Supplier<RankedProgram> program) {
    for (String kind : List.of("tpu", "", "host cuda")) {
      Run.of(program.get(), "--local=2", "--device", kind)
          .exits(2)
          .complainsInOneLine("--device takes cpu or gpu, or host or cuda: --device " + kind);
    }
    for (String kind : List.of("HOST", "cpu")) {
      List<String> options = new ArrayList<>(List.of("--local=2", "--device=" + kind));
      RankedProgram one = program.get();
      if (one instanceof AllReducePerf || one instanceof CollectivesPerf) {
        options.addAll(List.of("-e=1K", "-n=2")); // they measure for many seconds otherwise
      }
      Run.of(one, options.toArray(String[]::new)).exits(0);
    }
    boolean gpu = true;
    try {
      CudaGpu.visible();
    } catch (UnavailableException e) {
      gpu = false;
    }
    Assumptions.assumeFalse(gpu, "this machine has a GPU");
    Run run = Run.of(program.get(), "--local=2", "--device=cuda").exits(3);
    run.complains("device cuda is not available");
    assertTrue(run.err().lines().noneMatch(line -> line.startsWith("\tat ")), run::toString);
  }

  @Test
  void linesAreGatheredInRankOrder() {
    List<String> gathered = new ArrayList<>();
    LocalRanks.run(
        3,
        sync -> {
          String line = "rank " + sync.rank() + (sync.rank() == 1 ? " é".repeat(200) : "");
          List<String> lines = RankedProgram.gatherTexts(sync, line);
          assertEquals(sync.rank() == 0 ? 3 : 0, lines.size());
          synchronized (gathered) {
            gathered.addAll(lines);
          }
        });
    assertEquals("rank 0", gathered.get(0));
    assertTrue(gathered.get(1).startsWith("rank 1 é é"), gathered.get(1));
    assertEquals("rank 2", gathered.get(2));
  }

  @Test
  void misspelledOptionIsAnsweredWithTheRightOne() {
    Run.of(new GradientAverage(), "--sise=4").exits(2).complains("--size");
  }

  /** A program that returns a different code on each rank. */
  @Command(name = "probe")
  static final class Probe extends RankedProgram {
    private final List<Integer> codes;

    Probe(Integer... codes) {
      this.codes = List.of(codes);
    }

    @Override
    public void checkOptions() {
      // no options to check
    }

    @Override
    public int run(GradientSync sync) {
      int code = codes.get(sync.rank());
      if (code < 0) {
        throw new IllegalStateException("broken on purpose");
      }
      print(sync, "printed by rank %d", sync.rank());
      return code;
    }
  }

  @Test
  void printsOnceForAllRanks() {
    Run run = Run.of(new Probe(0, 0, 0), "--local=3").exits(0);
    assertEquals("printed by rank 0\n", run.out());
    assertEquals("", run.err());
  }

  @Test
  void oneRankThatIsNotRightDecides() {
    Run.of(new Probe(0, 1, 0), "--local=3").exits(1);
    Run.of(new Probe(1), new String[0]).exits(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--local=1", ""})
  void brokenProgramIsNotTakenForAWrongResult(String option) {
    String[] args = option.isEmpty() ? new String[0] : new String[] {option};
    Run.of(new Probe(-1), args).exits(3).complains("broken on purpose");
  }

  @Test
  void brokenRankEndsTheOthers() {
    Run.of(new Probe(0, -1), "--local=2").exits(3).complains("rank 1 failed");
  }

  @Test
  void ranksDrawDifferentNumbers() {
    Set<Long> drawn = new HashSet<>();
    for (int rank = 0; rank < 4; rank++) {
      RandomGenerator random = RankedProgram.random(1, rank);
      for (int i = 0; i < 1000; i++) {
        assertTrue(drawn.add(random.nextLong()), "drawn before: rank=" + rank + ", i=" + i);
      }
    }
    assertEquals(RankedProgram.random(1, 3).nextLong(), RankedProgram.random(1, 3).nextLong());
    assertFalse(drawn.contains(RankedProgram.random(2, 0).nextLong()));
  }
}
