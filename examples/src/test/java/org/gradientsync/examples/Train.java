package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.Random;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks;

/** Learns the sine of 3x with a hidden layer: the sum of out * tanh(in * x + bias). */
public final class Train {
  static final int HIDDEN = 16;
  static final int ROWS = 120; // of a step, all ranks together; a multiple of their number
  static final int IN = 0;
  static final int BIAS = 1;
  static final int OUT = 2;
  static final List<Parameter> PARAMETERS =
      List.of(
          new Parameter("in", DataType.FLOAT32, HIDDEN),
          new Parameter("bias", DataType.FLOAT32, HIDDEN),
          new Parameter("out", DataType.FLOAT32, HIDDEN));

  private Train() {}

  public static void main(String[] args) {
    if (args.length > 0) { // so many threads
      LocalRanks.run(Integer.parseInt(args[0]), sync -> train(sync, 1000));
    } else { // one rank, or what mpirun has started
      try (GradientSync sync = GradientSync.create()) {
        train(sync, 1000);
      }
    }
  }

  /** Gives the last loss. */
  public static double train(GradientSync sync, int steps) {
    float[][] weights = new float[PARAMETERS.size()][HIDDEN];
    Random random = new Random(sync.rank()); // another start on each rank ...
    for (float[] layer : weights) {
      for (int i = 0; i < HIDDEN; i++) {
        layer[i] = random.nextFloat() - 0.5f;
      }
      sync.communicator().broadcast(FloatBuffer.wrap(layer), 0); // ... becomes rank 0's
    }
    double[] loss = new double[1];
    try (GradientBuckets buckets = GradientBuckets.builder(sync, PARAMETERS).build()) {
      for (int step = 0; step < steps; step++) {
        float[][] gradients = gradients(weights, step, sync.rank(), sync.size(), loss);
        for (int i = OUT; i >= IN; i--) { // a real backward pass computes them one by one
          buckets.gradient(i).copyFrom(gradients[i]);
          buckets.ready(i);
        }
        buckets.finish(
            i -> {
              buckets.gradient(i).copyTo(gradients[i]); // the average
              for (int j = 0; j < HIDDEN; j++) {
                weights[i][j] -= 0.2f * gradients[i][j];
              }
            });
        if (step % 100 == 99) {
          sync.communicator().allReduce(DoubleBuffer.wrap(loss), ReduceOp.AVERAGE);
          if (sync.rank() == 0) {
            System.out.printf("step %d, loss %.4f%n", step + 1, loss[0]);
          }
        }
      }
    }
    return loss[0];
  }

  /** Means over this rank's rows, which are every size-th one of the step's. */
  static float[][] gradients(float[][] weights, int step, int rank, int size, double[] loss) {
    float[][] gradients = new float[weights.length][HIDDEN];
    int rows = ROWS / size;
    loss[0] = 0;
    for (int row = rank; row < ROWS; row += size) {
      float x = (float) ((step * ROWS + row) * 0.618 % 1 * 2 - 1); // where your data comes in
      float[] hidden = new float[HIDDEN];
      float y = 0;
      for (int j = 0; j < HIDDEN; j++) {
        hidden[j] = (float) Math.tanh(weights[IN][j] * x + weights[BIAS][j]);
        y += weights[OUT][j] * hidden[j];
      }
      float error = y - (float) Math.sin(3 * x);
      loss[0] += error * error / rows;
      float delta = 2 * error / rows;
      for (int j = 0; j < HIDDEN; j++) {
        float back = delta * weights[OUT][j] * (1 - hidden[j] * hidden[j]);
        gradients[OUT][j] += delta * hidden[j];
        gradients[BIAS][j] += back;
        gradients[IN][j] += back * x;
      }
    }
    return gradients;
  }
}
