package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tools.links.LinkPerf;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.perf.AllReducePerfTest;
import org.gradientsync.tools.perf.CollectivesPerf;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs the programs on real GPUs with ranks as threads. Ranks share GPUs if there are too few. */
class ExamplesOnGpu {
  private static final String CUDA = "--device=cuda";
  private static final List<CudaGpu> GPUS = CudaGpu.visible();

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void gradientsAreComputedAndAveragedOnTheGpu(DataType type) {
    for (int size : new int[] {0, 1, 10_000, 200_003}) {
      Run run =
          Run.of(new GradientAverage(), "--local=2", CUDA, "--size=" + size, "--type=" + type);
      run.exits(0)
          .prints(
              "Device: " + GPUS.get(0).name(),
              "Computation: " + type + " gradients computed on the GPU.",
              "[PASS] Gradient averaging is correct on all ranks.")
          .printsLike("  Kernel time \\(GPU only, first call\\): [0-9.]+ (us|ms|s)")
          .printsLike(
              "  Communication time \\([-a-z]+, end-to-end, first call\\): [0-9.]+ (us|ms|s)")
          .printsLike("  Overhead \\(communication / total\\): \\d+\\.\\d %");
    }
  }

  @Test
  void theGpuIsChosenWhereThereIsOne() {
    Run.of(new GradientAverage(), "--local=2", "--iterations=3")
        .exits(0)
        .prints("Device: " + GPUS.get(0).name())
        .printsLike("  Kernel time \\(GPU only, median of 3\\): .*");
    Run.of(new GradientAverage(), "--local=2", "--device=host")
        .exits(0)
        .prints("Device: host memory", "Computation: FLOAT32 gradients computed on the CPU.");
  }

  @ParameterizedTest
  @EnumSource
  void averagesAreTimedAndCheckedOnTheGpu(DataType type) {
    Run run =
        Run.of(
            new AllReducePerf(),
            "--local=2",
            CUDA,
            "-e=1M",
            "-n=5",
            "-t=" + type,
            "-o=SUM",
            "--check",
            "--host");
    run.exits(0).prints("# Out of bounds values : 0 OK");
    run.printsLike("#  Rank  1 Pid .* device \\d+ \\[[0-9a-f:.]+] .*");
    for (String[] row : AllReducePerfTest.rows(run)) {
      assertTrue(Double.parseDouble(row[9]) > 0, run::toString);
      assertEquals("0", row[8]);
      assertEquals("0", row[12]);
    }
  }

  @Test
  void collectivesAreCapturedAndChecked() {
    String sharing = "gradientsync.dev.peer.sharing";
    if (GPUS.size() == 1) {
      System.setProperty(sharing, "on");
    }
    try {
      Run.of(
              new CollectivesPerf(),
              "--local=2",
              CUDA,
              "--reducer=peer",
              "--graph",
              "-e=64K",
              "-n=20",
              "--check")
          .exits(0)
          .prints("# Out of bounds values : 0 OK")
          .prints("# Skipped: send-receive cannot be captured into a CUDA graph: its hosts meet");
    } finally {
      System.clearProperty(sharing);
    }
  }

  /** Runs the program of docs/kernels-of-your-own.md. */
  @Test
  void thePagesProgramTrains() {
    Assumptions.assumeTrue(CudaBlas.availability().usable(), CudaBlas.availability().reason());
    String ptx = Kernels.ptx("kernels");
    double[] alone = new double[1];
    double[] together = new double[2];
    LocalRanks.run(1, b -> b.device("cuda"), sync -> alone[0] = TrainOnGpus.train(sync, ptx, 1000));
    LocalRanks.run(
        2,
        b -> b.device("cuda"),
        sync -> together[sync.rank()] = TrainOnGpus.train(sync, ptx, 1000));
    assertTrue(alone[0] > 0 && alone[0] < 0.03, "loss: " + alone[0]);
    assertEquals(alone[0], together[0], alone[0] / 10); // the same rows, added in another order
    assertEquals(together[0], together[1]);
  }

  @Test
  void aReducerThatWaitsIsNotCaptured() {
    Run.of(new AllReducePerf(), "--local=2", CUDA, "--graph", "--reducer=host-staged")
        .exits(2)
        .complainsInOneLine("reducer cannot be captured into a CUDA graph");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void piIsEstimatedOnTheGpu(int ranks) {
    for (long samples : new long[] {1_000, 20_000_001}) {
      Run run = Run.of(new MonteCarloPi(), "--local=" + ranks, CUDA, "--samples=" + samples);
      run.exits(0).prints("Total samples: " + ranks * samples);
      run.printsLike("Points drawn on the GPU .*");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void matricesAreMultipliedOnTheGpu(int ranks) {
    for (int n : new int[] {1, 4, 5, 101, 512}) {
      Run run = Run.of(new MatrixMultiply(), "--local=" + ranks, CUDA, "--n=" + n).exits(0);
      run.prints("[PASS] The product is correct.");
      run.printsLike(
          "Multiplied by " + (CudaBlas.availability().usable() ? "cuBLAS" : "this") + ".*");
    }
  }

  @Test
  void theProgramsOwnProductHasTheBitsOfTheCpus() {
    // uses the kernel of multiply.cu, whether or not cuBLAS is installed
    try (GradientSync sync = GradientSync.builder().device("cuda").create()) {
      int n = 67;
      float[] a = new float[n * n];
      float[] b = new float[n * n];
      for (int i = 0; i < a.length; i++) {
        a[i] = (float) Math.sin(i);
        b[i] = (float) Math.cos(i);
      }
      float[] expected = new float[n * n];
      new MatrixMultiply().multiply(a, b, expected, n, n);
      float[] c = new float[n * n];
      CudaDevice gpu = (CudaDevice) sync.device();
      assertTrue(new GpuProduct(gpu, false).multiply(a, b, c, n, n) > 0);
      assertArrayEquals(expected, c);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void heatSpreadsInGpuMemory(int ranks) {
    for (int cells : new int[] {1, 2, 1000}) {
      Run.of(new HaloExchange(), "--local=" + ranks, CUDA, "--cells=" + cells, "--steps=50")
          .exits(0)
          .prints("[PASS] All cells are bit-equal to the serial computation.")
          .printsLike("Reducer: [-a-z]+, device: " + Pattern.quote(GPUS.get(0).name()));
    }
  }

  @ParameterizedTest
  @CsvSource({"2,1,1", "1,2,1", "2,2,2"})
  void hybridTrainingExchangesInGpuMemory(int tensor, int pipeline, int data) {
    Run.of(
            new TrainHybrid(),
            "--local=" + tensor * pipeline * data,
            "--tensor=" + tensor,
            "--pipeline=" + pipeline,
            CUDA,
            "--steps=6")
        .exits(0)
        .prints("Layers are computed on the CPU. All exchanges are in GPU memory.")
        .printsLike("\\[PASS] The losses of all steps equal those of one rank; .*");
  }

  @Test
  void theOthersRunWithRanksOnGpus() {
    Run.of(new LinearRegression(), "--local=2", CUDA)
        .exits(0)
        .prints("[PASS] All ranks have identical weights.");
  }

  @Test
  void theSelectionIsShown() {
    Run run = Run.of(new DeviceSelection(), "--local=2").exits(0);
    for (int rank = 0; rank < 2; rank++) {
      CudaGpu gpu = GPUS.get(rank % GPUS.size());
      String took = "rank " + rank + ": took " + gpu + ", by local rank";
      assertTrue(run.out().lines().anyMatch(line -> line.strip().startsWith(took)), run::toString);
    }
    int last = GPUS.size() - 1;
    Run.of(new DeviceSelection(), "--local=2", "--gpu=" + last)
        .exits(0)
        .prints("rank 1: took " + GPUS.get(last) + ", because --gpu says so");
    Run.of(new DeviceSelection(), "--gpu=" + GPUS.size())
        .exits(3)
        .complains("no such GPU: gradientsync.cuda.device=" + GPUS.size());
  }

  @Test
  void linksAreMeasured(@TempDir Path folder) throws Exception {
    Path json = folder.resolve("links.json");
    Run run = Run.of(new LinkPerf(), "--bytes=16M", "--repeats=3", "--json=" + json).exits(0);
    run.prints("GPUs: " + GPUS.size() + ", bytes: 16777216, repeats: 3", "GPU to host, GB/s");
    if (GPUS.size() > 1) {
      run.prints("GPU to GPU, both ways at once, GB/s", "GPU to GPU, latency, us");
    }
    Pattern figure = Pattern.compile("\"value\":([^,]*)");
    double[] figures =
        figure
            .matcher(Files.readString(json))
            .results()
            .mapToDouble(each -> Double.parseDouble(each.group(1)))
            .toArray();
    int gpus = GPUS.size();
    int ring = gpus > 1 ? gpus : 0;
    assertEquals(3 * gpus * (gpus - 1) + ring + 4 * gpus, figures.length);
    for (double each : figures) {
      assertTrue(each > 0 && each < 10_000, run::toString);
    }
  }

  @Test
  void anArrayIsDividedOverTheGpus() {
    for (int gpus = 1; gpus <= GPUS.size(); gpus++) {
      for (int elements : new int[] {1, gpus + 1, 1_000_003}) {
        Run run = Run.of(new PartitionedKernel(), "--gpus=" + gpus, "--elements=" + elements);
        run.exits(0)
            .prints(
                "GPUs: " + gpus + ", elements: " + elements,
                "[PASS] Every element of the gathered result is right.");
        assertEquals(gpus, run.out().lines().filter(l -> l.startsWith("Rank ")).count());
      }
    }
    Run.of(new PartitionedKernel(), "--gpus=" + (GPUS.size() + 1))
        .exits(2)
        .complainsInOneLine("there are not so many GPUs: --gpus " + (GPUS.size() + 1));
  }
}
