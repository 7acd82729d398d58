package org.gradientsync.examples;

import java.util.Arrays;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} for the update of the weights. */
final class MlpOptimizer {
  /** How a step changes the weights. */
  enum Kind {
    SGD,
    ADAM
  }

  private static final double RATE = 0.2;
  private static final double ADAM_RATE = 0.01;

  @Option(
      names = "--optimizer",
      paramLabel = "NAME",
      defaultValue = "SGD",
      description =
          "SGD: plain gradient descent. ADAM: two moments for each weight (default:"
              + " ${DEFAULT-VALUE}).")
  private Kind kind;

  @Option(
      names = "--sharded",
      description =
          "With ADAM: each rank has the moments of its part of the weights only. The weights get the"
              + " same bits.")
  private boolean sharded;

  @Option(
      names = "--rate",
      paramLabel = "R",
      description = "Learning rate (default: " + RATE + ", for ADAM " + ADAM_RATE + ").")
  private Double rate;

  /** Refuses invalid options. */
  void check(TrainMlp program) {
    program.requirePositive("--rate", rate);
    if (sharded && kind != Kind.ADAM) {
      throw program.badUse(
          "--sharded needs --optimizer ADAM, as plain gradient descent has no moments");
    }
  }

  Kind kind() {
    return kind;
  }

  boolean isSharded() {
    return sharded;
  }

  double rate() {
    return rate != null ? rate : kind == Kind.ADAM ? ADAM_RATE : RATE;
  }

  /**
   * Creates Adam, or returns null for plain gradient descent. With shards, the engine uses the
   * buckets' weights from now on.
   */
  Adam adam(GradientSync sync, MlpEngine engine, GradientBuckets buckets) {
    if (kind != Kind.ADAM) {
      return null;
    }
    if (sharded) {
      DeviceBuffer[] weights = new DeviceBuffer[buckets.size()];
      Arrays.setAll(weights, buckets::weight);
      engine.useWeights(List.of(weights));
    }
    return new Adam(sync, engine, buckets, sharded, rate());
  }
}
