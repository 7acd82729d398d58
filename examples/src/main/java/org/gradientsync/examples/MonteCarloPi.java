package org.gradientsync.examples;

import java.nio.LongBuffer;
import java.util.random.RandomGenerator;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Estimates pi: every rank throws darts at a square and counts those that hit the circle. */
@Command(
    name = "monte-carlo-pi",
    description = "Estimates pi from random points, whose hits are summed over the ranks.")
public class MonteCarloPi extends Example {
  /** An estimate this many standard deviations off is no bad luck: it is wrong. */
  private static final double TOLERANCE = 6;

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
  void checkOptions() {
    requireAtLeast(1, "--samples", samples);
  }

  @Override
  int run(GradientSync sync) {
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    stage(sync, "drawing points");
    long hits = countHits(samples, random(seed, sync.rank()));
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

  /** The computation, apart from the communication. */
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
