package org.gradientsync.examples;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} about checkpoints, which rank 0 writes and reads. */
final class MlpCheckpoints {
  @Option(
      names = "--checkpoint",
      paramLabel = "FILE",
      description = "Write the weights there at the end.")
  private Path file;

  @Option(
      names = "--checkpoint-every",
      paramLabel = "N",
      description = "Also write them each time when this many steps are done.")
  private Integer every;

  @Option(
      names = "--resume",
      paramLabel = "FILE",
      description =
          "Go on where a checkpoint was written; rank 0 reads it. Data, seed and widths must be the"
              + " same.")
  private Path resumed;

  /** Refuses what makes no sense. */
  void check(Program program) {
    if (every != null) {
      program.requireAtLeast(1, "--checkpoint-every", every);
      if (file == null) {
        throw program.badUse("--checkpoint-every needs --checkpoint FILE");
      }
    }
  }

  /** Where they are written, or null. */
  Path file() {
    return file;
  }

  /** The one to go on from, or null. */
  Path resumed() {
    return resumed;
  }

  /** Whether one is written when this many steps are done. */
  boolean isDue(long done, boolean last) {
    return file != null && (last || every != null && done % every == 0);
  }

  /**
   * Reads the one to go on from.
   *
   * @param program tells what is wrong
   * @return the steps that are done, or -1 if it cannot be read
   */
  long read(Program program, MlpModel model, List<DeviceBuffer> weights) {
    try {
      return Checkpoint.read(resumed, model.training(), weights);
    } catch (IOException e) {
      program.printError("cannot resume: %s", Program.reason(e));
      return -1;
    }
  }

  /**
   * Writes one, unless the training has diverged: then an earlier one is better.
   *
   * @param program tells what is wrong
   * @return whether the training can go on
   */
  boolean write(
      Program program,
      MlpModel model,
      long done,
      List<DeviceBuffer> weights,
      boolean finiteLosses) {
    try {
      if (finiteLosses && Weights.areFinite(weights)) {
        Checkpoint.write(file, model.training(), done, weights);
      } else {
        program.printError(
            "no checkpoint is written, as the training has diverged: steps done=%d", done);
      }
      return true;
    } catch (IOException e) {
      program.printError("cannot write the checkpoint: file=%s, error=%s", file, Program.reason(e));
      return false;
    }
  }
}
