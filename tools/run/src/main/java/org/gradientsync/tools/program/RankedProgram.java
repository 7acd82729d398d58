package org.gradientsync.tools.program;

import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/**
 * A program with ranks. It runs under a launcher or with embedded ranks, and prints once for all
 * ranks.
 *
 * <p>With {@code --local} all ranks run {@link #run} on the same object, each on its own thread. So
 * the state of a rank belongs in local variables; fields hold options, which no rank changes.
 */
@Command(
    exitCodeList = {
      RankedProgram.RIGHT + ":The result is right on every rank.",
      RankedProgram.WRONG + ":The result is wrong on at least one rank.",
      RankedProgram.BAD_USE + ":The command line asks for something that cannot be.",
      RankedProgram.CANNOT_RUN + ":It could not run here.",
      RankedProgram.RANK_LOST
          + ":A rank was lost: the same job may succeed when it is started again."
    })
public abstract class RankedProgram extends Program {
  private static final Set<String> DEVICES = Set.of("cpu", "gpu", "host", "cuda");

  @Option(
      names = "--local",
      paramLabel = "RANKS",
      description = "Run this many ranks as threads of one JVM, without mpirun.")
  private Integer local;

  @Option(
      names = "--device",
      paramLabel = "KIND",
      description = "cpu or gpu, or host or cuda (default: a GPU where every rank has one).")
  private String device;

  /** Applies the program's options to a sync. */
  public void configure(GradientSync.Builder builder) {
    // by default use the fastest reducer
  }

  /** Runs one rank, and returns the exit code, the same on all ranks. */
  public abstract int run(GradientSync sync);

  /**
   * Returns whether all ranks call {@link #run} at the same time, so that their options are
   * compared first. Otherwise {@link #run} calls {@link #requireOptionsOfFirst}.
   */
  public boolean startsTogether() {
    return true;
  }

  /** Returns the options that may differ from rank to rank. */
  public Set<String> ownOptions() {
    return Set.of();
  }

  /**
   * Returns how many ranks to run as threads of this JVM, or null for those that a launcher
   * started.
   */
  public Integer embeddedRanks() {
    return local;
  }

  /** Refuses invalid values of the program's own options, with {@link #badUse}. */
  public abstract void checkOptions();

  @Override
  public final void checkCommandLine() {
    checkLocal();
    checkDevice();
    checkOptions();
  }

  @Override
  public final int runProgram() {
    Integer embedded = embeddedRanks();
    return embedded == null ? runLaunched() : runEmbedded(embedded);
  }

  private int runLaunched() {
    try (GradientSync sync = configured(GradientSync.builder()).create()) {
      String difference = startsTogether() ? SameOptions.difference(sync, compared()) : "";
      if (!difference.isEmpty()) {
        complain(sync, difference);
        return BAD_USE;
      }
      return run(sync);
    }
  }

  private List<OptionSpec> compared() {
    return options().filter(option -> !ownOptions().contains(option.longestName())).toList();
  }

  /**
   * Refuses a rank whose options are not those of rank 0; the others may go on without it.
   * Collective.
   */
  public final void requireOptionsOfFirst(GradientSync sync) {
    String option = SameOptions.differenceFromFirst(sync, compared());
    if (!option.isEmpty()) {
      throw badUse(option + " is not that of rank 0: give all ranks the same options");
    }
  }

  private int runEmbedded(int ranks) {
    AtomicInteger code = new AtomicInteger(RIGHT);
    LocalRanks.run(ranks, this::configured, sync -> code.accumulateAndGet(run(sync), Math::max));
    return code.get();
  }

  /** Applies all options to a builder, for programs that need more syncs. */
  public final GradientSync.Builder configured(GradientSync.Builder builder) {
    if (device != null) {
      builder.device(device.toLowerCase(Locale.ROOT));
    }
    configure(builder);
    return builder;
  }

  private void checkLocal() {
    if (local == null) {
      return;
    }
    if (local < 1 || local > LocalRanks.MAX_RANKS) {
      throw badUse("--local takes 1 to " + LocalRanks.MAX_RANKS + " ranks: --local " + local);
    }
    requireNoMpirun("--local");
  }

  /** Refuses mpirun, because each of its processes would start all ranks itself. */
  public final void requireNoMpirun(String starter) {
    if (isOneOfSeveral()) {
      throw badUse(starter + " starts the ranks itself, so run it without mpirun");
    }
  }

  private void checkDevice() {
    if (device != null && !DEVICES.contains(device.toLowerCase(Locale.ROOT))) {
      throw badUse("--device takes cpu or gpu, or host or cuda: --device " + device);
    }
  }

  /** Returns whether {@code --device host} or {@code --device cpu} was given. */
  public final boolean onHost() {
    return "host".equalsIgnoreCase(device) || "cpu".equalsIgnoreCase(device);
  }

  /** Prints a line of output, once for all ranks. */
  public final void print(GradientSync sync, String format, Object... values) {
    if (sync.rank() == 0) {
      print(format, values);
    }
  }

  /** Prints an error that all ranks know, once for all ranks. */
  public final void complain(GradientSync sync, String sentence) {
    if (sync.rank() == 0) {
      printError("%s", sentence);
    }
  }

  /** Shows the current stage to users who wait a long time. */
  public final void stage(GradientSync sync, String stage) {
    if (sync.rank() == 0) {
      stage(stage);
    }
  }

  /** Prints the result of a training, and returns the exit code. */
  public final int printVerdict(GradientSync sync, boolean sameWeights, boolean finite) {
    if (!sameWeights) {
      print(sync, "[FAIL] The ranks have different weights.");
    } else if (!finite) {
      print(sync, "[FAIL] The training has diverged: try a smaller --rate.");
    } else {
      print(sync, "[PASS] All ranks have identical weights.");
    }
    return sameWeights && finite ? RIGHT : WRONG;
  }

  /** Returns on all ranks whether something is true on every rank. Collective. */
  public static boolean everywhere(GradientSync sync, boolean here) {
    long[] all = {here ? 1 : 0};
    sync.communicator().allReduce(LongBuffer.wrap(all), ReduceOp.MIN);
    return all[0] == 1;
  }

  /** Gathers the texts of all ranks on rank 0, in their order; elsewhere none. Collective. */
  public static List<String> gatherTexts(GradientSync sync, String text) {
    byte[] own = text.getBytes(StandardCharsets.UTF_8);
    return sync.communicator().gather(own, 0).stream()
        .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
        .toList();
  }

  /**
   * Returns random numbers that differ from rank to rank, and are the same in every run.
   * Consecutive seeds could give ranks the same stream, shifted by a few numbers; splitting does
   * not.
   */
  public static SplittableRandom random(long seed, int rank) {
    SplittableRandom root = new SplittableRandom(seed);
    SplittableRandom stream = root.split();
    for (int i = 0; i < rank; i++) {
      stream = root.split();
    }
    return stream;
  }

  public static double milliseconds(long nanoseconds) {
    return nanoseconds / 1e6;
  }
}
