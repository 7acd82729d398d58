package org.gradientsync.examples;

import org.gradientsync.GradientSync;
import org.gradientsync.elastic.ElasticTraining;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} for ranks that may be lost and may join. */
final class MlpElastic {
  private static final int COMMIT_EVERY = 10;

  @Option(
      names = "--elastic",
      description =
          "Go on when ranks are lost, and let others join; start it with gradient-sync run"
              + " --min-np.")
  private boolean elastic;

  @Option(
      names = "--commit-every",
      paramLabel = "N",
      description =
          "With --elastic --sharded: copy the whole state to each host each time when this many"
              + " steps are done, to go back there when a rank is lost (default: "
              + COMMIT_EVERY
              + ").")
  private Integer commitEvery;

  /**
   * Refuses invalid options.
   *
   * @param plain whether no other option stands in the way
   * @param checkpointEvery how often a checkpoint is written, or null
   */
  void check(TrainMlp program, boolean plain, boolean sharded, Integer checkpointEvery) {
    if (commitEvery != null) {
      program.requireAtLeast(1, "--commit-every", commitEvery);
      if (!elastic || !sharded) {
        throw program.badUse(
            "--commit-every needs --elastic --sharded, as otherwise each rank has all state");
      }
    }
    if (elastic && !plain) {
      throw program.badUse(
          "--elastic does not go with --hook, --local-steps, --alone, --exposed or --timeline");
    }
    if (elastic && sharded && checkpointEvery != null && checkpointEvery % commitEvery() != 0) {
      throw program.badUse(
          "--checkpoint-every must be a multiple of --commit-every: --checkpoint-every "
              + checkpointEvery
              + " --commit-every "
              + commitEvery());
    }
  }

  boolean isUsed() {
    return elastic;
  }

  private int commitEvery() {
    return commitEvery == null ? COMMIT_EVERY : commitEvery;
  }

  /** Creates the training, which closes the sync. */
  ElasticTraining training(GradientSync sync, ElasticMlp loop, boolean sharded) {
    return ElasticTraining.builder(sync, loop).commitEvery(sharded ? commitEvery() : 0).build();
  }
}
