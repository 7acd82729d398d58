package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaGpu;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the GPU programs without a GPU, and the shipped kernels. */
public class GpuProgramsTest {
  @Test
  void deviceSelectionSaysThatThereIsNoGpu() {
    requireNoGpu();
    for (String[] args : new String[][] {{}, {"--local=3"}, {"--gpu=1"}, {"--device=host"}}) {
      Run run = Run.of(new DeviceSelection(), args).exits(0);
      run.printsLike("No GPU is used here: .* Every rank works in host memory\\.");
      assertEquals(2, run.out().lines().count(), run::toString);
      assertEquals("", run.err());
    }
  }

  @Test
  void impossibleChoicesAreBadUse() {
    Run.of(new DeviceSelection(), "--gpu=-1").exits(2).complainsInOneLine("--gpu must be 0");
    Run.of(new DeviceSelection(), "--gpu=first").exits(2).complainsInOneLine("'first'");
    Run.of(new DeviceSelection(), "--gpu=0", "--device=host")
        .exits(2)
        .complainsInOneLine("--gpu chooses a GPU and --device host refuses one.");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--elements=5", "--gpus=1", "--gpus=8", "--device=cuda", "--device=gpu"})
  void partitionedKernelNeedsAGpu(String option) {
    requireNoGpu();
    Run.of(new PartitionedKernel(), option)
        .exits(3)
        .complainsInOneLine("a kernel needs a GPU, and none can be used here: ");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--gpus=0",
        "--gpus=-1",
        "--gpus=all",
        "--elements=0",
        "--elements=200000001",
        "--device=host",
        "--device=cpu",
        "--local=2"
      })
  void impossibleOptionsAreBadUse(String option) {
    Run run = Run.of(new PartitionedKernel(), option).exits(2);
    run.complainsInOneLine(option.substring(0, option.indexOf('=')));
    assertFalse(run.err().contains("none can be used here"), run::toString);
  }

  @Test
  void partitionedKernelHasHelp() {
    Run run = Run.of(new PartitionedKernel(), "--help").exits(0);
    assertTrue(run.out().contains("--gpus=N"), run::toString);
    assertFalse(run.out().contains("--local"), run::toString);
  }

  @ParameterizedTest
  @ValueSource(strings = {"gradient", "heat", "mlp", "monte_carlo", "multiply", "square_and_shift"})
  void thePtxIsForAllGpusAndFusesNothing(String name) {
    assertTrue(Kernels.ptx(name).contains(".target sm_75"));
    assertFalse(Kernels.ptx(name).contains("fma.rn"), "Java does not fuse; bits are compared");
  }

  /** What docs/kernels-of-your-own.md shows must be in the files that ExamplesOnGpu runs. */
  @ParameterizedTest
  @CsvSource({
    "java, src/test/java/org/gradientsync/examples/TrainOnGpus.java",
    "cuda, src/test/cuda/kernels.cu"
  })
  void thePageShowsWhatIsTested(String language, String file) throws IOException {
    String tested = Files.readString(Path.of(file)).replaceAll("\\s", "");
    String page = Files.readString(Path.of("../docs/kernels-of-your-own.md"));
    String[] parts = page.split("```" + language + "\n");
    assertTrue(parts.length > 1, "there is no code");
    for (int i = 1; i < parts.length; i++) {
      for (String piece : parts[i].substring(0, parts[i].indexOf("```")).split("\n\n")) {
        assertTrue(tested.contains(piece.replaceAll("\\s", "")), piece);
      }
    }
  }

  public static void requireNoGpu() {
    boolean found = true;
    try {
      CudaGpu.visible();
    } catch (UnavailableException e) {
      found = false;
    }
    Assumptions.assumeFalse(found, "this machine has a GPU");
  }
}
