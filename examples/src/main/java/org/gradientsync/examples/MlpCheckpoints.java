package org.gradientsync.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} for checkpoints. Rank 0 writes and reads them. */
final class MlpCheckpoints {
  @Option(
      names = "--checkpoint",
      paramLabel = "FILE",
      description = "Write the weights, Adam's moments and the hooks' state there at the end.")
  private Path file;

  @Option(
      names = "--checkpoint-every",
      paramLabel = "N",
      description = "Also write them each time when this many steps are done.")
  private Integer every;

  @Option(
      names = "--resume",
      paramLabel = "FILE",
      arity = "0..1",
      fallbackValue = "",
      description =
          "Go on where a checkpoint was written; rank 0 reads it. Data, seed, widths and"
              + " optimizer must be the same; the number of ranks may differ. Without FILE: that of"
              + " --checkpoint if it is there, otherwise start from the beginning, so that the same"
              + " command can be started again.")
  private Path resumed;

  @Option(
      names = "--stop-on-signal",
      defaultValue = "${sys:gradientsync.stop.on.signal:-false}",
      fallbackValue = "true",
      description =
          "Let all ranks end after the same step, with exit code 0, when one gets SIGTERM or"
              + " SIGUSR1; the checkpoint is written before. With --elastic, only ranks that get"
              + " one leave.")
  private boolean stopsOnSignal;

  /** Refuses invalid options. */
  void check(Program program) {
    if (every != null) {
      program.requireAtLeast(1, "--checkpoint-every", every);
      if (file == null) {
        throw program.badUse("--checkpoint-every needs --checkpoint FILE");
      }
    }
    if (goesOn() && file == null) {
      throw program.badUse("--resume needs --checkpoint FILE, or a FILE of its own");
    }
  }

  boolean areUsed() {
    return file != null || resumed != null || stopsOnSignal;
  }

  /** Returns the checkpoint to write, or null. */
  Path file() {
    return file;
  }

  boolean stopsOnSignal() {
    return stopsOnSignal;
  }

  /** Returns how often to write it, or null for only at the end. */
  Integer every() {
    return every;
  }

  /** Returns whether the same command may have written the checkpoint to resume from. */
  boolean goesOn() {
    return Path.of("").equals(resumed);
  }

  /** Returns the checkpoint to resume from, or null. Call it before one is written. */
  Path resumed() {
    return !goesOn() ? resumed : Files.exists(file) ? file : null;
  }

  /** Returns whether to write a checkpoint after this many steps. */
  boolean isDue(long done, boolean last) {
    return file != null && (last || every != null && done % every == 0);
  }

  /**
   * Reads the checkpoint to resume from.
   *
   * @param program prints errors
   * @param state receives the weights and the optimizer's state
   * @param hooks receives the state of each rank's hook; null without hooks
   * @return the number of finished steps, or -1 if the checkpoint cannot be read
   */
  long read(
      Program program, Checkpoint.Training training, List<DeviceBuffer> state, List<byte[]> hooks) {
    try {
      return Checkpoint.read(resumed(), training, state, hooks);
    } catch (IOException e) {
      program.printError("cannot resume: %s", Program.reason(e));
      return -1;
    }
  }

  /**
   * Reads the checkpoint to resume from if this host has it, for ranks that need not have it.
   *
   * @param state as for {@link #read}
   * @return the number of finished steps, or 0 if there is nothing to read
   */
  long readIfThere(Checkpoint.Training training, List<DeviceBuffer> state) {
    try {
      return resumed() == null ? 0 : Checkpoint.read(resumed(), training, state);
    } catch (IOException e) {
      return 0; // rank 0 says why
    }
  }

  /**
   * Writes a checkpoint, unless the training has diverged. Then an earlier checkpoint is better.
   *
   * @param program prints errors
   * @param hooks the state of each rank's hook; empty without hooks
   * @return whether training can continue
   */
  boolean write(
      Program program,
      Checkpoint.Training training,
      long done,
      List<DeviceBuffer> state,
      List<byte[]> hooks,
      boolean finiteLosses) {
    try {
      if (finiteLosses && Weights.areFinite(state)) {
        Checkpoint.write(file, training, done, state, hooks);
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
