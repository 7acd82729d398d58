package org.gradientsync.examples;

import java.nio.LongBuffer;
import java.util.Locale;
import java.util.stream.LongStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.tools.program.RankedProgram;
import org.gradientsync.tools.program.Units;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Averages a gradient with a known average, checks every element on every rank, and times it. */
@Command(
    name = "gradient-average",
    description =
        "Averages gradients across ranks and checks every element of the result on every rank.")
public class GradientAverage extends RankedProgram {
  private static final String BANNER = "=".repeat(70);

  @Option(
      names = "--size",
      paramLabel = "N",
      defaultValue = "10000",
      description = "Elements of each rank's gradient (default: ${DEFAULT-VALUE}).")
  private long size;

  @Option(
      names = "--type",
      paramLabel = "TYPE",
      defaultValue = "FLOAT32",
      description = "FLOAT16, BFLOAT16, FLOAT32 or FLOAT64 (default: ${DEFAULT-VALUE}).")
  private DataType type;

  @Option(
      names = "--reducer",
      paramLabel = "NAME",
      description = "The reducer to average with, instead of the fastest.")
  private String reducer;

  @Option(
      names = "--iterations",
      paramLabel = "K",
      defaultValue = "1",
      description = {
        "How often to average (default: ${DEFAULT-VALUE}).",
        "With one, the times are those of a first call. From two on, they are medians, and one"
            + " more",
        "runs first and is not timed."
      })
  private int iterations;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new GradientAverage(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(0, "--size", size);
    requireAtLeast(1, "--iterations", iterations);
    if (!type.isFloatingPoint()) {
      throw badUse(
          "integers have no average, so --type takes a floating-point type only: --type " + type);
    }
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    if (reducer != null) {
      builder.reducer(reducer);
    }
  }

  @Override
  public int run(GradientSync sync) {
    if (sync.size() < 2) {
      printError(
          "averaging takes two ranks or more: run mpirun -np 2 examples/bin/gradient-average, or"
              + " add --local 2.");
      return BAD_USE;
    }
    printHeader(sync);
    Gradients gradients = new Gradients(type, sync.size());
    double[] computeTimes = new double[iterations];
    double[] communicationTimes = new double[iterations];
    long wrong = 0;
    try (DeviceBuffer buffer = sync.allocate(type, size);
        GradientWork work = GradientWork.on(buffer, gradients, sync.rank())) {
      int warmUp = iterations > 1 ? 1 : 0;
      for (int i = -warmUp; i < iterations; i++) {
        String iteration = i < 0 ? "warm-up" : "iteration " + (i + 1) + " of " + iterations;
        stage(sync, "computing gradients, " + iteration);
        double computed = work.compute();
        sync.barrier(); // waiting for the slowest rank to compute is not communication
        stage(sync, "averaging, " + iteration);
        double averaged = work.communicate(() -> average(sync, buffer));
        if (i >= 0) {
          computeTimes[i] = computed;
          communicationTimes[i] = averaged;
        }
        stage(sync, "verifying, " + iteration);
        wrong += verify(sync, gradients, buffer);
      }
      printSamples(sync, gradients, buffer);
    }
    boolean right = printVerdict(sync, wrong);
    printTimes(sync, median(computeTimes), median(communicationTimes));
    return right ? RIGHT : WRONG;
  }

  /** Averages. This is the communication, separate from the computation. */
  void average(GradientSync sync, DeviceBuffer buffer) {
    sync.average(buffer);
  }

  /** Checks this rank's elements, and returns how many are wrong. */
  private long verify(GradientSync sync, Gradients gradients, DeviceBuffer buffer) {
    Gradients.Check check = gradients.check(buffer);
    if (!check.passed()) {
      printError(
          "wrong average: rank=%d, wrong=%d of %d, first wrong index=%d, averaged=%s, expected=%s",
          sync.rank(), check.wrong(), size, check.firstWrong(), check.averaged(), check.expected());
    }
    return check.wrong();
  }

  private void printHeader(GradientSync sync) {
    print(sync, "[Rank 0] World size = %d", sync.size());
    print(sync, BANNER);
    print(sync, "Gradient Average Demo");
    print(sync, BANNER);
    print(sync, "Number of ranks: %d", sync.size());
    print(sync, "Gradient vector length per rank: %d", size);
    print(sync, "Device: %s", sync.device().name());
    print(sync, "Computation: %s gradients computed on the %s.", type, onGpu(sync) ? "GPU" : "CPU");
    print(
        sync,
        "Communication: gradients averaged via reducer %s, launcher %s.",
        sync.reducer(),
        sync.launcher());
    print(sync, BANNER);
  }

  private void printSamples(GradientSync sync, Gradients gradients, DeviceBuffer buffer) {
    if (sync.rank() != 0 || size == 0) {
      return;
    }
    long[] indices = LongStream.of(0, size / 2, size - 1).distinct().toArray();
    print(sync, "Sample averaged gradient values (rank 0):");
    for (long index : indices) {
      print(sync, "  avg_grad[%d] = %.6f", index, gradients.read(buffer, index));
    }
    print(sync, "Expected values:");
    for (long index : indices) {
      print(sync, "  expected[%d] = %.6f", index, gradients.expected(index));
    }
  }

  /** Tells all ranks whether the results of all ranks are right. Collective. */
  private boolean printVerdict(GradientSync sync, long wrong) {
    print(sync, "Verifying gradient averaging correctness...");
    long[] wrongRanks = {wrong == 0 ? 0 : 1};
    sync.communicator().allReduce(LongBuffer.wrap(wrongRanks), ReduceOp.SUM);
    print(
        sync,
        wrong == 0
            ? "[PASS] Gradient averaging is correct."
            : "[FAIL] Gradient averaging is wrong.");
    if (wrongRanks[0] == 0) {
      print(sync, "[PASS] Gradient averaging is correct on all ranks.");
    } else {
      print(
          sync,
          "[FAIL] Gradient averaging is wrong on %d of %d ranks.",
          wrongRanks[0],
          sync.size());
    }
    return wrongRanks[0] == 0;
  }

  private void printTimes(GradientSync sync, double compute, double communication) {
    String which =
        iterations > 1 ? String.format(Locale.ROOT, ", median of %d", iterations) : ", first call";
    double total = compute + communication;
    print(sync, "Performance:");
    if (onGpu(sync)) {
      print(sync, "  Kernel time (GPU only%s): %s", which, Units.time(compute));
    } else {
      print(sync, "  Compute time (CPU%s): %s", which, Units.time(compute));
    }
    print(
        sync,
        "  %s time (%s, end-to-end%s): %s",
        onGpu(sync) && sync.launcher().equals("mpi") ? "MPI communication" : "Communication",
        sync.reducer(),
        which,
        Units.time(communication));
    print(sync, "  Total time: %s", Units.time(total));
    if (onGpu(sync)) {
      print(
          sync,
          "  Overhead (communication / total): %.1f %%",
          total > 0 ? 100 * communication / total : 0);
    }
    print(sync, BANNER);
    print(sync, "Demo complete.");
    print(sync, BANNER);
  }

  private static boolean onGpu(GradientSync sync) {
    return sync.device() instanceof CudaDevice;
  }
}
