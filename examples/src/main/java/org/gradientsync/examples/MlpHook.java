package org.gradientsync.examples;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gradientsync.GradientSync;
import org.gradientsync.hooks.Compression;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.hooks.TopK;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} for what takes the place of averages. */
final class MlpHook {
  private static final Pattern FORM = Pattern.compile("(?i)(powersgd|topk|plain-topk):([0-9.e-]+)");

  @Option(
      names = "--hook",
      paramLabel = "NAME:N",
      description =
          "Send compressed gradients: powersgd:4 of rank 4, topk:0.01 the largest hundredth;"
              + " plain-topk:0.01 without error feedback, for comparison.")
  private String hook;

  @Option(
      names = "--hook-warmup",
      paramLabel = "N",
      defaultValue = "10",
      description =
          "With --hook, first average exactly for N steps, which the bytes per step include"
              + " (default: ${DEFAULT-VALUE}).")
  private int warmUp;

  /** Refuses invalid options. */
  void check(Program program, boolean sharded) {
    program.requireAtLeast(0, "--hook-warmup", warmUp);
    if (hook == null) {
      return;
    }
    if (sharded) {
      throw program.badUse("--hook does not go with --sharded");
    }
    try {
      create(new int[0]);
    } catch (IllegalArgumentException e) {
      throw program.badUse(
          "--hook takes powersgd:N, topk:FRACTION or plain-topk:FRACTION: --hook %s (%s)"
              .formatted(hook, e.getMessage()));
    }
  }

  /** Creates this rank's hook, or returns null without one. */
  Compression create(int[] widths) {
    if (hook == null) {
      return null;
    }
    Matcher matcher = FORM.matcher(hook);
    if (!matcher.matches()) {
      throw new IllegalArgumentException("not NAME:N");
    }
    String number = matcher.group(2);
    if (!matcher.group(1).equalsIgnoreCase("powersgd")) {
      boolean plain = matcher.group(1).equalsIgnoreCase("plain-topk");
      return new TopK(Double.parseDouble(number)).errorFeedback(!plain).warmUp(warmUp);
    }
    PowerSgd power = new PowerSgd(Integer.parseInt(number));
    for (int layer = 0; layer + 1 < widths.length; layer++) {
      power.rows("layer" + layer, widths[layer + 1]);
    }
    return power.warmUp(warmUp);
  }

  String text() {
    return hook;
  }

  /** What identifies the hook in a checkpoint, behind the optimizer's name. */
  String suffix() {
    return hook == null ? "" : "+" + hook.toLowerCase(Locale.ROOT);
  }

  /** Returns all ranks' states on rank 0, and otherwise an empty list. Collective. */
  static List<byte[]> gather(GradientSync sync, Compression hook) {
    if (hook == null) {
      return List.of();
    }
    ByteArrayOutputStream state = new ByteArrayOutputStream();
    try {
      hook.save(new DataOutputStream(state));
    } catch (IOException e) {
      throw new UncheckedIOException(e); // this stream does not write anywhere
    }
    return sync.communicator().gather(state.toByteArray(), 0);
  }

  /**
   * Gives each rank's hook its state. Collective.
   *
   * @param states of all ranks, on rank 0
   */
  static void scatter(GradientSync sync, Compression hook, List<byte[]> states) {
    for (int rank = 0; rank < sync.size(); rank++) {
      byte[] state = sync.communicator().broadcast(sync.rank() == 0 ? states.get(rank) : null, 0);
      if (rank == sync.rank()) {
        try {
          hook.load(new DataInputStream(new ByteArrayInputStream(state)));
        } catch (IOException e) {
          throw new UncheckedIOException(e); // the checkpoint is whole, and of the same hook
        }
      }
    }
  }
}
