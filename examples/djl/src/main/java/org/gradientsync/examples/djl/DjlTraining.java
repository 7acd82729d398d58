package org.gradientsync.examples.djl;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import ai.djl.util.PairList;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.internal.host.HostDevice;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * Data-parallel training with Deep Java Library: DJL computes, this library averages.
 *
 * <p>A rank is a process, and not a thread: DJL collects gradients for one thread of a process at a
 * time. All ranks together see the rows that one rank with as many rows would see.
 */
@Command(
    name = "djl-training",
    sortOptions = false,
    description = {
      "Trains a small network with Deep Java Library (PyTorch) on data that is spread over the"
          + " ranks.",
      "Without mpirun there is one rank: DJL collects gradients for one thread of a process at a"
          + " time, so ranks cannot be threads."
    },
    exitCodeOnExecutionException = DjlTraining.CANNOT_RUN,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      DjlTraining.RIGHT + ":All ranks have ended with the same weights.",
      DjlTraining.WRONG + ":The ranks' weights differ, or the training has diverged.",
      DjlTraining.BAD_USE + ":The command line asks for something that cannot be.",
      DjlTraining.CANNOT_RUN + ":It could not run here, or a rank was lost."
    })
public final class DjlTraining implements Callable<Integer> {
  static final int RIGHT = 0;
  static final int WRONG = 1;
  static final int BAD_USE = 2;
  static final int CANNOT_RUN = 3;

  private static final int HIDDEN = 64;
  private static final int STEPS_PER_LINE = 10;

  /** Rows that nobody trains with lie far behind those that are. */
  private static final long FIRST_TEST_ROW = 1L << 40;

  private static final int TEST_ROWS = 1000;

  @Spec private CommandSpec spec;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this and exit.")
  private boolean help;

  @Option(
      names = "--steps",
      paramLabel = "N",
      defaultValue = "200",
      description = "Steps of gradient descent (default: ${DEFAULT-VALUE}).")
  private int steps;

  @Option(
      names = "--rows",
      paramLabel = "N",
      defaultValue = "128",
      description = "Rows of data on each rank in each step (default: ${DEFAULT-VALUE}).")
  private int rows;

  @Option(
      names = "--rate",
      paramLabel = "R",
      defaultValue = "0.1",
      description = "Learning rate (default: ${DEFAULT-VALUE}).")
  private float rate;

  @Option(
      names = "--seed",
      paramLabel = "N",
      defaultValue = "1",
      description = "Of the data, and on the CPU of the first weights (default: ${DEFAULT-VALUE}).")
  private int seed;

  @Option(
      names = "--threads",
      paramLabel = "N",
      defaultValue = "1",
      description =
          "Threads with which PyTorch computes on each rank (default: ${DEFAULT-VALUE}). With one,"
              + " and without --gpu, two runs give the same bits.")
  private int threads;

  @Option(
      names = "--in-place",
      description = "Average the gradients in DJL's own memory, instead of copying into buckets.")
  private boolean inPlace;

  @Option(
      names = "--gpu",
      description =
          "Train on GPUs, one for each rank, and average the gradients there, in place. Needs"
              + " PyTorch for CUDA, see docs/deep-java-library.md.")
  private boolean onGpu;

  private DjlTraining() {}

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    System.exit(
        new CommandLine(new DjlTraining())
            .setParameterExceptionHandler(DjlTraining::explain)
            .execute(args));
  }

  private static int explain(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    PrintWriter err = command.getErr();
    err.println(command.getCommandName() + ": " + e.getMessage());
    CommandLine.UnmatchedArgumentException.printSuggestions(e, err);
    return BAD_USE;
  }

  @Override
  public Integer call() {
    requireAtLeast(1, "--steps", steps);
    requireAtLeast(1, "--rows", rows);
    requireAtLeast(1, "--threads", threads);
    if (onGpu && inPlace) {
      throw new ParameterException(
          spec.commandLine(), "--in-place is for the CPU: with --gpu there is no other way.");
    }
    if (!(rate > 0) || Float.isInfinite(rate)) {
      throw new ParameterException(
          spec.commandLine(), "--rate must be more than 0: --rate " + rate + ".");
    }
    // Without --gpu DJL's arrays are in host memory, whatever GPUs the machine has.
    String kind = onGpu ? CudaDevice.KIND : HostDevice.KIND;
    try (GradientSync sync = GradientSync.builder().device(kind).create()) {
      return run(sync);
    } catch (GradientSyncException e) {
      printError(e.getMessage());
      return CANNOT_RUN;
    }
  }

  private void printError(String sentence) {
    spec.commandLine().getErr().println(spec.name() + ": " + sentence);
  }

  private void requireAtLeast(int minimum, String option, int value) {
    if (value < minimum) {
      throw new ParameterException(
          spec.commandLine(),
          option + " must be " + minimum + " or more: " + option + " " + value + ".");
    }
  }

  /** Ranks with other options would not train one model. */
  private boolean haveSameOptions(GradientSync sync) {
    for (OptionSpec option : spec.options()) {
      Object value = option.getValue();
      if (!option.longestName().equals("--threads")
          && !isSame(sync, value == null ? 0 : value.hashCode())) {
        if (sync.rank() == 0) {
          printError(
              option.longestName()
                  + " differs from rank to rank: rank 0 has "
                  + value
                  + "; give all ranks the same options");
        }
        return false;
      }
    }
    return true;
  }

  private int run(GradientSync sync) {
    if (!haveSameOptions(sync)) {
      return BAD_USE;
    }
    Engine engine = PyTorch.load(sync, threads);
    Device device = onGpu ? PyTorch.gpu(engine, sync) : Device.cpu();
    engine.setRandomSeed(seed + sync.rank()); // each rank guesses its own first weights
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Reducer: %s, device: %s", sync.reducer(), sync.device().name());
    print(
        sync,
        "Engine: PyTorch %s, DJL %s, threads: %d",
        engine.getVersion(),
        Engine.getDjlVersion(),
        threads);
    try (Model model = Model.newInstance("spiral", device, engine.getEngineName())) {
      model.setBlock(network());
      try (Trainer trainer = model.newTrainer(config(device))) {
        trainer.initialize(new Shape(rows, Spiral.FEATURES));
        List<NDArray> weights = weights(model);
        DjlArrays arrays = onGpu ? new GpuArrays(sync) : new HostArrays(sync);
        broadcast(sync, arrays, weights);
        try (Averager averager = averager(sync, arrays, weights)) {
          train(sync, trainer, averager);
        }
        sync.barrier(); // now no rank works in another's arrays any more
        return report(sync, trainer, weights) ? RIGHT : WRONG;
      }
    }
  }

  private Averager averager(GradientSync sync, DjlArrays arrays, List<NDArray> weights) {
    if (onGpu) {
      return new GpuAverager(sync, arrays, weights);
    }
    return inPlace ? new InPlaceAverager(sync, weights) : new BucketAverager(sync, weights);
  }

  private static Block network() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(HIDDEN).build())
        .add(Activation::relu)
        .add(Linear.builder().setUnits(HIDDEN).build())
        .add(Activation::relu)
        .add(Linear.builder().setUnits(Spiral.ARMS).build());
  }

  private DefaultTrainingConfig config(Device device) {
    return new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
        .optDevices(new Device[] {device})
        .optOptimizer(
            Optimizer.sgd().setLearningRateTracker(Tracker.fixed(rate)).optMomentum(0.9f).build());
  }

  /** The network's weights in its own order, which is the same on all ranks. */
  private static List<NDArray> weights(Model model) {
    PairList<String, Parameter> parameters = model.getBlock().getParameters();
    List<NDArray> weights = new ArrayList<>();
    for (int i = 0; i < parameters.size(); i++) {
      NDArray weight = parameters.valueAt(i).getArray();
      weight.setName(parameters.keyAt(i));
      weights.add(weight);
    }
    return weights;
  }

  /** Gives all ranks the weights of rank 0, in DJL's own memory. */
  private static void broadcast(GradientSync sync, DjlArrays arrays, List<NDArray> weights) {
    for (NDArray weight : weights) {
      try (DeviceBuffer buffer = arrays.wrap(weight)) {
        sync.broadcast(buffer, 0);
      }
    }
  }

  private void train(GradientSync sync, Trainer trainer, Averager averager) {
    Spiral data = new Spiral(seed);
    for (int step = 0; step < steps; step++) {
      double loss;
      try (NDManager manager = trainer.getManager().newSubManager()) {
        long first = ((long) step * sync.size() + sync.rank()) * rows;
        Spiral.Rows batch = data.rows(manager, first, rows);
        try (GradientCollector collector = trainer.newGradientCollector()) {
          NDList answer = trainer.forward(new NDList(batch.points()));
          NDArray error = trainer.getLoss().evaluate(new NDList(batch.arms()), answer);
          collector.backward(error);
          loss = error.getFloat();
        }
      }
      averager.average();
      trainer.step();
      if (step % STEPS_PER_LINE == 0 || step == steps - 1) {
        print(sync, "Step %d, Loss: %.8f", step, average(sync, loss));
      }
    }
  }

  /** Every rank has as many rows, so the average over the ranks is that over all rows. */
  private static double average(GradientSync sync, double value) {
    double[] average = {value};
    sync.communicator().allReduce(DoubleBuffer.wrap(average), ReduceOp.AVERAGE);
    return average[0];
  }

  /** What the network has learned, and whether it is the same on all ranks. */
  private boolean report(GradientSync sync, Trainer trainer, List<NDArray> weights) {
    double loss;
    double right;
    try (NDManager manager = trainer.getManager().newSubManager()) {
      Spiral.Rows test = new Spiral(seed).rows(manager, FIRST_TEST_ROW, TEST_ROWS);
      NDList answer = trainer.evaluate(new NDList(test.points()));
      loss = trainer.getLoss().evaluate(new NDList(test.arms()), answer).getFloat();
      NDArray isRight = answer.singletonOrThrow().argMax(1).eq(test.arms());
      right = isRight.countNonzero().getLong() / (double) TEST_ROWS;
    }
    long digest = digest(weights);
    print(sync, "Final loss: %.8f", loss);
    print(sync, "New rows that are recognized: %.1f %%", 100 * right);
    print(sync, "Weights: %016x", digest);
    if (!isSame(sync, digest)) {
      print(sync, "[FAIL] The ranks have different weights.");
      return false;
    }
    if (!Double.isFinite(loss)) {
      print(sync, "[FAIL] The training has diverged: try a smaller --rate.");
      return false;
    }
    print(sync, "[PASS] All ranks have identical weights.");
    return true;
  }

  /** The first bytes of the weights' SHA-256. */
  private static long digest(List<NDArray> weights) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      for (NDArray weight : weights) {
        digest.update(weight.toByteBuffer());
      }
      return ByteBuffer.wrap(digest.digest()).getLong();
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has it", e);
    }
  }

  /** Whether all ranks have the same value; the same answer on all of them. Collective. */
  private static boolean isSame(GradientSync sync, long value) {
    long[] least = {value};
    long[] most = {value};
    sync.communicator().allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    sync.communicator().allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    return least[0] == most[0];
  }

  private void print(GradientSync sync, String format, Object... values) {
    if (sync.rank() == 0) {
      spec.commandLine().getOut().println(String.format(Locale.ROOT, format, values));
    }
  }
}
