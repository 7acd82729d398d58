package org.gradientsync.examples;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Set;
import java.util.random.RandomGenerator;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Estimates pi: every rank throws darts at a square, and counts those that hit the circle. */
@Command(
    name = "monte-carlo-pi",
    description = "Estimates pi from random points, whose hits are summed over the ranks.")
public class MonteCarloPi extends RankedProgram {
  /** An estimate off by this many standard deviations is wrong, not bad luck. */
  private static final double TOLERANCE = 6;

  /** More threads than any GPU runs at once. */
  private static final int MOST_STREAMS = 1 << 18;

  private static final int THREADS = 256;

  @Option(
      names = "--samples",
      paramLabel = "N",
      defaultValue = "10000000",
      description = "Points that each rank draws (default: ${DEFAULT-VALUE}).")
  private long samples;

  @Option(
      names = "--seed",
      paramLabel = "S",
      defaultValue = "1",
      description = "Another seed draws other points (default: ${DEFAULT-VALUE}).")
  private long seed;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new MonteCarloPi(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(1, "--samples", samples);
  }

  @Override
  public Set<String> ownOptions() {
    return Set.of("--samples"); // a faster rank may draw more samples
  }

  @Override
  public int run(GradientSync sync) {
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    stage(sync, "drawing points");
    long hits =
        sync.device() instanceof CudaDevice gpu
            ? countHitsOn(gpu, sync)
            : countHits(samples, random(seed, sync.rank()));
    long[] totals = {hits, samples};
    sync.communicator().allReduce(LongBuffer.wrap(totals), ReduceOp.SUM);

    double estimate = 4.0 * totals[0] / totals[1];
    double error = Math.abs(estimate - Math.PI);
    double deviation = Math.sqrt(Math.PI * (4 - Math.PI) / totals[1]);
    print(sync, "Pi estimate: %.8f", estimate);
    print(sync, "Total samples: %d", totals[1]);
    print(sync, "Error: %.8f (standard deviation %.8f)", error, deviation);
    boolean right = everywhere(sync, error <= TOLERANCE * deviation);
    print(
        sync,
        right
            ? "[PASS] The estimate is as near to pi as chance allows."
            : "[FAIL] The estimate is further from pi than chance allows.");
    return right ? RIGHT : WRONG;
  }

  /**
   * Counts hits on a GPU, where each thread has its own stream of random numbers and its own
   * counter. The points differ from the CPU's.
   */
  private long countHitsOn(CudaDevice gpu, GradientSync sync) {
    int streams = (int) Math.min(samples, MOST_STREAMS);
    print(sync, "Points drawn on the GPU (%s) by %d threads of each rank.", gpu.name(), streams);
    long[] hits = new long[streams];
    try (CudaModule module = CudaModule.load(gpu, Kernels.ptx("monte_carlo"));
        CudaBuffer counters = gpu.allocate(DataType.INT64, streams)) {
      module
          .kernel("count_hits")
          .launch(
              counters.stream(),
              Grid.covering(streams, THREADS),
              counters,
              streams,
              samples,
              seed,
              sync.rank());
      counters.copyTo(hits); // waits for the kernel
    }
    return Arrays.stream(hits).sum();
  }

  /** Counts hits. This is the computation, separate from the communication. */
  long countHits(long points, RandomGenerator random) {
    long hits = 0;
    for (long i = 0; i < points; i++) {
      double x = random.nextDouble();
      double y = random.nextDouble();
      if (x * x + y * y <= 1) {
        hits++;
      }
    }
    return hits;
  }
}
