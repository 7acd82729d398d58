package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.random.RandomGenerator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Data-parallel training in its smallest form. Every rank has its own rows of data and all weights,
 * and the ranks average their gradients in each step.
 */
@Command(
    name = "linear-regression",
    description = "Fits a linear model to data that is spread over the ranks.")
public class LinearRegression extends RankedProgram {
  private static final long WEIGHTS_SEED = 1;
  private static final long DATA_SEED = 2;
  private static final long FIRST_GUESS_SEED = 3;
  private static final double NOISE = 0.01;
  private static final int STEPS_PER_LINE = 10;

  @Option(
      names = "--steps",
      paramLabel = "N",
      defaultValue = "100",
      description = "Steps of gradient descent (default: ${DEFAULT-VALUE}).")
  private int steps;

  @Option(
      names = "--rows",
      paramLabel = "N",
      defaultValue = "1000",
      description = "Rows of data on each rank (default: ${DEFAULT-VALUE}).")
  private int rows;

  @Option(
      names = "--features",
      paramLabel = "N",
      defaultValue = "20",
      description = "Numbers in each row (default: ${DEFAULT-VALUE}).")
  private int features;

  @Option(
      names = "--rate",
      paramLabel = "R",
      defaultValue = "0.1",
      description = "Learning rate (default: ${DEFAULT-VALUE}).")
  private float rate;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new LinearRegression(), args);
  }

  @Override
  public void checkOptions() {
    requireAtLeast(0, "--steps", steps);
    requireAtLeast(1, "--rows", rows);
    requireAtLeast(1, "--features", features);
    if ((long) rows * features > 1 << 28) {
      throw badUse("--rows times --features must be " + (1 << 28) + " or less");
    }
    if (!(rate > 0) || Float.isInfinite(rate)) {
      throw badUse("--rate must be more than 0, and not infinite as float32: --rate " + rate);
    }
  }

  @Override
  public int run(GradientSync sync) {
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    print(sync, "Reducer: %s, device: %s", sync.reducer(), sync.device().name());
    if (sync.device() instanceof CudaDevice) {
      print(sync, "Gradients are computed on the CPU and averaged in GPU memory.");
    }
    float[] truth = weights(random(WEIGHTS_SEED, 0));
    Data data = data(truth, random(DATA_SEED, sync.rank()));
    float[] weights = firstGuess(sync);
    float[] gradient = new float[weights.length];
    double loss = Double.NaN;
    // One buffer for all gradients, allocated once. An average of thousands of numbers costs the
    // same as one of a single number, and the reducer prepares a buffer only once.
    try (DeviceBuffer gradients = sync.allocate(DataType.FLOAT32, weights.length)) {
      for (int step = 0; step < steps; step++) {
        stage(sync, "training, step " + step + " of " + steps);
        computeGradient(data, weights, gradient);
        gradients.copyFrom(gradient);
        average(sync, gradients);
        gradients.copyTo(gradient);
        for (int i = 0; i < weights.length; i++) {
          weights[i] -= rate * gradient[i];
        }
        if (step % STEPS_PER_LINE == 0 || step == steps - 1) {
          loss = averageLoss(sync, data, weights);
          print(sync, "Step %d, Loss: %.4f", step, loss);
        }
      }
    }
    print(sync, "Largest error of a weight: %.6f", largestDifference(weights, truth));
    boolean diverged = steps > 0 && !Double.isFinite(loss);
    return printVerdict(sync, haveSameWeights(sync, weights), !diverged);
  }

  /** Averages the gradients. This is the communication, separate from the computation. */
  void average(GradientSync sync, DeviceBuffer gradients) {
    sync.average(gradients);
  }

  /** A rank's part of the data: rows of features, and one target per row. */
  record Data(float[] x, float[] y) {}

  /** Returns the weights of the features, then the intercept. */
  private float[] weights(RandomGenerator random) {
    float[] weights = new float[features + 1];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = (float) random.nextGaussian();
    }
    return weights;
  }

  private Data data(float[] truth, RandomGenerator random) {
    float[] x = new float[rows * features];
    float[] y = new float[rows];
    for (int row = 0; row < rows; row++) {
      for (int i = 0; i < features; i++) {
        x[row * features + i] = (float) random.nextGaussian();
      }
      y[row] = (float) (predict(truth, x, row) + NOISE * random.nextGaussian());
    }
    return new Data(x, y);
  }

  /** Guesses differently on every rank, then takes rank 0's guess. */
  private float[] firstGuess(GradientSync sync) {
    float[] guess = weights(random(FIRST_GUESS_SEED, sync.rank()));
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, guess.length)) {
      buffer.copyFrom(guess);
      sync.broadcast(buffer, 0);
      buffer.copyTo(guess);
    }
    return guess;
  }

  /**
   * Computes the gradient of this rank's mean squared error. This is the computation, separate from
   * the communication.
   */
  void computeGradient(Data data, float[] weights, float[] gradient) {
    double[] sums = new double[gradient.length];
    for (int row = 0; row < rows; row++) {
      double error = predict(weights, data.x, row) - data.y[row];
      for (int i = 0; i < features; i++) {
        sums[i] += error * data.x[row * features + i];
      }
      sums[features] += error;
    }
    for (int i = 0; i < gradient.length; i++) {
      gradient[i] = (float) (2 * sums[i] / rows);
    }
  }

  private double predict(float[] weights, float[] x, int row) {
    double sum = weights[features];
    for (int i = 0; i < features; i++) {
      sum += (double) weights[i] * x[row * features + i];
    }
    return sum;
  }

  /** Returns the mean squared error over the rows of all ranks. Collective. */
  private double averageLoss(GradientSync sync, Data data, float[] weights) {
    double squares = 0;
    for (int row = 0; row < rows; row++) {
      double error = predict(weights, data.x, row) - data.y[row];
      squares += error * error;
    }
    double[] loss = {squares / rows};
    sync.communicator().allReduce(DoubleBuffer.wrap(loss), ReduceOp.AVERAGE);
    return loss[0];
  }

  private static double largestDifference(float[] weights, float[] truth) {
    double largest = 0;
    for (int i = 0; i < truth.length; i++) {
      largest = Math.max(largest, Math.abs((double) weights[i] - truth[i]));
    }
    return largest;
  }

  /**
   * Returns whether all ranks ended with the same bits. Only equal averages keep the weights equal,
   * because the ranks exchange the weights only at the start. Collective.
   */
  private static boolean haveSameWeights(GradientSync sync, float[] weights) {
    int[] own = new int[weights.length];
    Arrays.setAll(own, i -> Float.floatToRawIntBits(weights[i]));
    int[] first = own.clone();
    sync.communicator().broadcast(IntBuffer.wrap(first), 0);
    return everywhere(sync, Arrays.equals(own, first));
  }
}
