package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.Locale;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.examples.hybrid.Grid;
import org.gradientsync.examples.hybrid.HybridSettings;
import org.gradientsync.examples.hybrid.HybridTraining;
import org.gradientsync.examples.hybrid.Model;
import org.gradientsync.examples.hybrid.SerialTraining;
import org.gradientsync.tools.program.RankedProgram;
import org.gradientsync.tools.program.Units;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Trains a multi-layer perceptron whose layers, stages and rows are divided over the ranks: tensor,
 * pipeline and data parallelism together.
 */
@Command(
    name = "train-hybrid",
    description = {
      "Trains a multi-layer perceptron with tensor, pipeline and data parallelism together.",
      "Tensor ranks share each layer, stages of the pipeline have different layers, and data ranks"
          + " have different rows. Example with 8 ranks: train-hybrid --local 8 --tensor 2"
          + " --pipeline 2 --data 2"
    })
public class TrainHybrid extends RankedProgram {
  private static final double TOLERANCE = 1e-5;
  private static final int STEPS_PER_LINE = 10;
  private static final int MOST_WARM_UP = 5;
  private static final int MOST_LAYERS = 1000;
  private static final int MOST_ELEMENTS = 1 << 28;

  /** Multiplications of a serial training that takes a few seconds. */
  private static final double SMALL = 5e9;

  @Option(
      names = "--tensor",
      paramLabel = "N",
      defaultValue = "1",
      description = "Ranks that share each layer (default: ${DEFAULT-VALUE}).")
  private int tensor;

  @Option(
      names = "--pipeline",
      paramLabel = "N",
      defaultValue = "1",
      description = "Stages that the layers are divided into (default: ${DEFAULT-VALUE}).")
  private int pipeline;

  @Option(
      names = "--data",
      paramLabel = "N",
      description = "Copies of the model, each for its own rows (default: what the ranks allow).")
  private Integer data;

  @Option(
      names = "--layers",
      paramLabel = "N",
      defaultValue = "8",
      description = "Layers of weights, in pairs, so an even number (default: ${DEFAULT-VALUE}).")
  private int layers;

  @Option(
      names = "--width",
      paramLabel = "N",
      defaultValue = "32",
      description = "Inputs, and outputs of each layer (default: ${DEFAULT-VALUE}).")
  private int width;

  @Option(
      names = "--batch",
      paramLabel = "N",
      defaultValue = "64",
      description = "Rows of a step, all data ranks together (default: ${DEFAULT-VALUE}).")
  private int batch;

  @Option(
      names = "--micro-batches",
      paramLabel = "N",
      defaultValue = "4",
      description =
          "Parts of a data rank's rows, which go through the pipeline one after the other (default:"
              + " ${DEFAULT-VALUE}).")
  private int microBatches;

  @Option(
      names = "--accumulate",
      paramLabel = "N",
      defaultValue = "1",
      description =
          "Steps whose gradients are added up before an update (default: ${DEFAULT-VALUE}).")
  private int accumulate;

  @Option(
      names = "--steps",
      paramLabel = "N",
      defaultValue = "40",
      description = "Steps, a multiple of --accumulate (default: ${DEFAULT-VALUE}).")
  private int steps;

  @Option(
      names = "--rate",
      paramLabel = "R",
      defaultValue = "0.5",
      description = "Learning rate (default: ${DEFAULT-VALUE}).")
  private double rate;

  @Option(
      names = "--recompute",
      description =
          "Keep only the inputs of a stage, and compute its other activations again in the backward"
              + " pass: less memory, more time.")
  private boolean recompute;

  @Option(
      names = "--check",
      negatable = true,
      description =
          "Make the same training on one rank with the whole model, and compare the losses of all"
              + " steps (default: for small trainings, but not with --benchmark).")
  private Boolean check;

  @Option(
      names = "--benchmark",
      description =
          "Measure the time of a step and the rows per second; print no losses meanwhile.")
  private boolean benchmark;

  @Option(
      names = "--seed",
      paramLabel = "N",
      defaultValue = "1",
      description = "Of the data and the first weights (default: ${DEFAULT-VALUE}).")
  private long seed;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new TrainHybrid(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(1, "--tensor", tensor);
    requireAtLeast(1, "--pipeline", pipeline);
    if (data != null) {
      requireAtLeast(1, "--data", data);
    }
    requireAtLeast(2, "--layers", layers);
    requireAtMost(MOST_LAYERS, "--layers", layers);
    requireAtLeast(1, "--width", width);
    requireAtLeast(1, "--batch", batch);
    requireAtLeast(1, "--micro-batches", microBatches);
    requireAtLeast(1, "--accumulate", accumulate);
    requireAtLeast(1, "--steps", steps);
    if (layers % 2 != 0) {
      throw badUse("--layers must be even, because layers come in pairs: --layers " + layers);
    }
    if (layers / 2 < pipeline) {
      throw badUse(
          "each stage needs a pair of layers: --layers " + layers + ", --pipeline " + pipeline);
    }
    if (width % tensor != 0) {
      throw badUse(
          "--tensor must divide --width, because tensor ranks have equal parts of a layer: --width "
              + width
              + ", --tensor "
              + tensor);
    }
    if ((long) width * Math.max(width, batch) > MOST_ELEMENTS) {
      throw badUse("--width times itself, or times --batch, must be " + MOST_ELEMENTS + " or less");
    }
    if (steps % accumulate != 0) {
      throw badUse(
          "--steps must be a multiple of --accumulate, so that it ends with an update: --steps "
              + steps
              + ", --accumulate "
              + accumulate);
    }
    if (!(rate > 0) || Double.isInfinite(rate)) {
      throw badUse("--rate must be more than 0, and finite: --rate " + rate);
    }
  }

  @Override
  public int run(GradientSync sync) {
    Grid grid = new Grid(tensor, pipeline, data == null ? dataRanks(sync.size()) : data);
    String problem = problem(sync, grid);
    if (problem != null) {
      complain(sync, problem);
      return BAD_USE;
    }
    HybridSettings settings =
        new HybridSettings(
            grid, new Model(layers, width, seed), batch, microBatches, accumulate, rate, recompute);
    try (HybridTraining training = training(sync, settings)) {
      printHeader(sync, settings, training);
      double[] losses = train(sync, training, settings);
      boolean same = everywhere(sync, training.hasSameWeights());
      return verdict(sync, settings, losses, same);
    }
  }

  /** Creates this rank's part of the training. Collective. */
  HybridTraining training(GradientSync sync, HybridSettings settings) {
    return new HybridTraining(sync, settings);
  }

  /** Returns the data ranks that use all ranks, or 0 if there is no such number. */
  private int dataRanks(int ranks) {
    long modelRanks = (long) tensor * pipeline;
    return ranks % modelRanks == 0 ? (int) (ranks / modelRanks) : 0;
  }

  /** Returns what is wrong with the grid for these ranks, or null. */
  private String problem(GradientSync sync, Grid grid) {
    if (grid.ranks() != sync.size()) {
      return String.format(
          Locale.ROOT,
          "--tensor, --pipeline and --data must multiply to the number of ranks: --tensor %d,"
              + " --pipeline %d%s, ranks=%d",
          tensor,
          pipeline,
          data == null ? "" : ", --data " + data,
          sync.size());
    }
    if (batch % ((long) grid.data() * microBatches) != 0) {
      return String.format(
          Locale.ROOT,
          "--batch must be a multiple of the data ranks times --micro-batches: --batch %d, data"
              + " ranks=%d, --micro-batches %d",
          batch,
          grid.data(),
          microBatches);
    }
    return null;
  }

  private void printHeader(GradientSync sync, HybridSettings settings, HybridTraining training) {
    Grid grid = settings.grid();
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(
        sync,
        "Grid: %d tensor x %d pipeline x %d data; tensor groups in brackets",
        grid.tensor(),
        grid.pipeline(),
        grid.data());
    for (int stage = 0; stage < grid.pipeline(); stage++) {
      print(
          sync,
          "  stage %d, layers %s: ranks %s",
          stage,
          settings.model().layersOf(stage, grid.pipeline()),
          grid.ranksOf(stage));
    }
    print(sync, "Reducers: %s; device: %s", training.reducers(), sync.device().name());
    if (sync.device() instanceof CudaDevice) {
      print(sync, "Layers are computed on the CPU. All exchanges are in GPU memory.");
    }
    print(
        sync,
        "Model: %d layers of width %d, %d parameters; a step: %d rows, %d micro-batches of %d",
        layers,
        width,
        settings.model().parameters(),
        batch,
        microBatches,
        settings.rows());
    print(
        sync,
        "Activation memory, most on a rank: %.1f KiB %s, %.1f KiB %s",
        kibibytes(settings, recompute),
        recompute ? "with --recompute" : "without --recompute",
        kibibytes(settings, !recompute),
        recompute ? "without" : "with");
  }

  private static double kibibytes(HybridSettings settings, boolean recompute) {
    return HybridTraining.activationBytes(settings, recompute) / 1024.0;
  }

  /** Makes all steps, and returns the losses. Collective. */
  private double[] train(GradientSync sync, HybridTraining training, HybridSettings settings) {
    double[] losses = new double[steps];
    int warmUp = benchmark ? Math.min(MOST_WARM_UP, steps - 1) : 0;
    int shared = 0; // the steps whose losses all ranks know
    long start = System.nanoTime();
    for (int step = 0; step < steps; step++) {
      stage(sync, "training, step " + step + " of " + steps);
      if (benchmark && step == warmUp) {
        sync.barrier();
        start = System.nanoTime();
      }
      losses[step] = training.step(step);
      if (!benchmark && (step % STEPS_PER_LINE == 0 || step == steps - 1)) {
        share(sync, losses, shared, step + 1);
        shared = step + 1;
        print(sync, "Step %d, Loss: %.6f", step, losses[step]);
      }
    }
    if (benchmark) {
      sync.barrier();
      printSpeed(sync, System.nanoTime() - start, steps - warmUp);
      share(sync, losses, 0, steps);
      print(sync, "Step %d, Loss: %.6f", steps - 1, losses[steps - 1]);
    }
    return losses;
  }

  /** Adds up the ranks' shares of the losses of some steps. Collective. */
  private static void share(GradientSync sync, double[] losses, int from, int to) {
    sync.communicator().allReduce(DoubleBuffer.wrap(losses, from, to - from), ReduceOp.SUM);
  }

  private void printSpeed(GradientSync sync, long nanoseconds, int timedSteps) {
    double time = milliseconds(nanoseconds) / timedSteps;
    print(sync, "Step: %s, mean of %d steps", Units.time(time), timedSteps);
    print(sync, "Throughput: %.0f rows/s over all ranks", batch / time * 1e3);
  }

  private boolean checks(HybridSettings settings) {
    double work = 3.0 * settings.model().parameters() * batch * steps;
    return check == null ? !benchmark && work <= SMALL : check;
  }

  /** Prints the result. Collective. */
  private int verdict(
      GradientSync sync, HybridSettings settings, double[] losses, boolean sameWeights) {
    if (!sameWeights) {
      print(sync, "[FAIL] Ranks of a data group have different weights.");
      return WRONG;
    }
    if (!isFinite(losses)) {
      print(sync, "[FAIL] The training has diverged: try a smaller --rate.");
      return WRONG;
    }
    if (!checks(settings)) {
      print(sync, "[PASS] All ranks of each data group have identical weights.");
      return RIGHT;
    }
    stage(sync, "training on one rank");
    double difference = sync.rank() == 0 ? largestDifference(settings, losses) : 0;
    boolean right = everywhere(sync, difference <= TOLERANCE);
    print(
        sync,
        right
            ? "[PASS] The losses of all steps equal those of one rank; relative difference: %.1e."
            : "[FAIL] The losses differ from those of one rank; relative difference: %.1e.",
        difference);
    return right ? RIGHT : WRONG;
  }

  private static boolean isFinite(double[] losses) {
    for (double loss : losses) {
      if (!Double.isFinite(loss)) {
        return false;
      }
    }
    return true;
  }

  /** Makes the same training on one rank, and returns the largest relative difference. */
  private double largestDifference(HybridSettings settings, double[] losses) {
    SerialTraining serial = new SerialTraining(settings);
    double largest = 0;
    for (int step = 0; step < steps; step++) {
      double expected = serial.step(step);
      double difference = Math.abs(losses[step] - expected) / Math.abs(expected);
      if (!(difference <= TOLERANCE)) {
        printError("wrong loss: step=%d, is=%s, expected=%s", step, losses[step], expected);
        return difference;
      }
      largest = Math.max(largest, difference);
    }
    return largest;
  }
}
