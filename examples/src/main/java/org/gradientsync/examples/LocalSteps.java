package org.gradientsync.examples;

import java.util.List;
import java.util.Locale;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Option;

/**
 * The options of {@link TrainMlp} for steps on each rank alone, after which the ranks average what
 * these have changed (local SGD), with Nesterov's momentum if asked for (DiLoCo).
 *
 * <p>After Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019, and Douillard et
 * al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023.
 */
final class LocalSteps {
  private static final double OUTER_RATE = 0.7;
  private static final double OUTER_MOMENTUM = 0.9;

  @Option(
      names = "--local-steps",
      paramLabel = "H",
      defaultValue = "1",
      description =
          "Steps of each rank alone before all ranks average what these have changed (default:"
              + " ${DEFAULT-VALUE}, average the gradients of each step).")
  private int steps;

  @Option(
      names = "--outer",
      paramLabel = "KIND",
      defaultValue = "average",
      description =
          "With --local-steps, what is done with this average: average, add it to the weights, or"
              + " nesterov, with momentum 0.9 and rate 0.7 (default: ${DEFAULT-VALUE}).")
  private String outer;

  /** Refuses invalid options. */
  void check(Program program, int allSteps, boolean plain) {
    program.requireAtLeast(1, "--local-steps", steps);
    outer = outer.toLowerCase(Locale.ROOT);
    if (!outer.equals("average") && !outer.equals("nesterov")) {
      throw program.badUse("--outer takes average or nesterov: --outer " + outer);
    }
    if (outer.equals("nesterov") && !areUsed()) {
      throw program.badUse("--outer nesterov needs --local-steps 2 or more");
    }
    if (allSteps % steps != 0) {
      throw program.badUse(
          "--steps must be a multiple of --local-steps: --steps %s --local-steps %s"
              .formatted(allSteps, steps));
    }
    if (areUsed() && !plain) {
      throw program.badUse(
          "--local-steps does not go with --hook, --sharded, --alone, --exposed, --timeline,"
              + " --stop-on-signal or checkpoints");
    }
  }

  boolean areUsed() {
    return steps > 1;
  }

  int number() {
    return steps;
  }

  /**
   * {@return one rank's averages, which begin with the weights that all ranks have; null if each
   * step is averaged}
   */
  Averages begin(GradientSync sync, List<DeviceBuffer> weights) {
    return areUsed() ? new Averages(sync, weights) : null;
  }

  /** One rank's averages. */
  final class Averages {
    private final GradientSync sync;
    private final List<DeviceBuffer> weights;
    private final double[][] anchors; // the weights after the last average
    private final double[][] momentum;

    private Averages(GradientSync sync, List<DeviceBuffer> weights) {
      this.sync = sync;
      this.weights = weights;
      anchors = weights.stream().map(Weights::get).toArray(double[][]::new);
      momentum = weights.stream().map(w -> new double[(int) w.count()]).toArray(double[][]::new);
    }

    /**
     * Averages what the ranks have changed, if this many steps are a multiple of the local ones.
     * Collective.
     */
    void end(long done) {
      for (int layer = 0; layer < anchors.length && done % steps == 0; layer++) {
        double[] change = Weights.get(weights.get(layer));
        for (int i = 0; i < change.length; i++) {
          change[i] -= anchors[layer][i];
        }
        sync.average(change);
        move(anchors[layer], momentum[layer], change);
        Weights.set(weights.get(layer), anchors[layer]);
        anchors[layer] = Weights.get(weights.get(layer)); // rounded to their type
      }
    }

    private void move(double[] anchor, double[] kept, double[] change) {
      boolean nesterov = outer.equals("nesterov");
      for (int i = 0; i < change.length; i++) {
        kept[i] = OUTER_MOMENTUM * kept[i] + change[i];
        anchor[i] += nesterov ? OUTER_RATE * (OUTER_MOMENTUM * kept[i] + change[i]) : change[i];
      }
    }
  }
}
