package org.gradientsync.tools.run;

import org.gradientsync.GradientSync;

/** What the ranks of {@link RunIT} run. */
public final class RankProgram {
  private static final int FAILED = 7;

  private RankProgram() {}

  /**
   * Runs one rank.
   *
   * @param args {@code fail}: rank 1 ends with code 7 at once, {@code wait}: all wait to be ended,
   *     {@code mislead}: all say what launchers say, and fail
   */
  public static void main(String[] args) throws Exception {
    GradientSync sync = GradientSync.create();
    run(sync, args);
    if (args[0].equals("fail") && sync.rank() == 1) {
      Runtime.getRuntime().halt(FAILED);
    }
    Thread.sleep(args[0].equals("wait") ? 60_000 : 0);
    sync.barrier();
  }

  /** The part that ranks as threads run, too. */
  public static void run(GradientSync sync, String[] args) throws Exception {
    float[] average = {sync.rank()};
    sync.average(average);
    System.out.print("rank " + sync.rank());
    System.out.flush();
    Thread.sleep(100); // so that the pieces of all ranks come in turns
    System.out.println(" of " + sync.size() + " averages " + average[0]);
    System.out.println("says " + sync.launcher() + " on " + cpus() + " CPUs, " + variables());
    System.err.println("complains: " + String.join(" ", args));
    if (args[0].equals("mislead")) {
      System.err.println("srun: error: node1: task 1: Exited with exit code 9");
      System.out.println("APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)");
      System.err.println("There are not enough slots available");
      throw new IllegalStateException("on purpose");
    }
  }

  static int cpus() {
    return Runtime.getRuntime().availableProcessors();
  }

  private static String variables() {
    return "[" + System.getenv("UCX_ERROR_SIGNALS") + "] [" + System.getenv("OF_THE_USER") + "]";
  }
}
