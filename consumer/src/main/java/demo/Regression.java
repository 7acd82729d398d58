package demo;

import java.util.Random;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;

/** Fits a line to points of which each rank has its own. */
public class Regression {
  private static final int POINTS = 1000;
  private static final int STEPS = 200;

  /** Trains on as many threads as the argument says; without one, as a rank of what started it. */
  public static void main(String[] args) {
    if (args.length > 0) {
      LocalRanks.run(Integer.parseInt(args[0]), Regression::train);
      return;
    }
    try (GradientSync sync = GradientSync.create()) {
      train(sync);
    }
  }

  private static void train(GradientSync sync) {
    Random random = new Random(sync.rank());
    float[] x = new float[POINTS];
    float[] y = new float[POINTS];
    for (int i = 0; i < POINTS; i++) {
      x[i] = random.nextFloat();
      y[i] = 3 * x[i] - 1 + 0.1f * (float) random.nextGaussian();
    }

    float[] line = {0, 0};
    float[] gradient = new float[3]; // the last one is the loss
    for (int step = 0; step < STEPS; step++) {
      gradient[0] = gradient[1] = gradient[2] = 0;
      for (int i = 0; i < POINTS; i++) {
        float error = line[0] * x[i] + line[1] - y[i];
        gradient[0] += 2 * error * x[i] / POINTS;
        gradient[1] += 2 * error / POINTS;
        gradient[2] += error * error / POINTS;
      }
      sync.average(gradient);
      line[0] -= 0.5f * gradient[0];
      line[1] -= 0.5f * gradient[1];
    }
    if (sync.rank() == 0) {
      System.out.printf(
          "ranks=%d y=%sx%s loss=%s%n", sync.size(), line[0], line[1], gradient[2]);
    }
  }
}
