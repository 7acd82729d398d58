package org.gradientsync.tools.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.tools.program.HostName;

/** What the ranks of {@link RunIT} run. */
public final class RankProgram {
  private static final int FAILED = 7;
  private static final int KILLED = 137;
  private static final long SHORT = 300; // milliseconds, less than mpirun leaves
  private static final long LONG = 1000 * (RankLaunch.PATIENCE_SECONDS + 1);

  private RankProgram() {}

  /**
   * Runs one rank.
   *
   * @param args {@code fail}: rank 1 ends with code 7 at once, {@code wait}: all wait to be ended,
   *     {@code save}: these also take a while to end, {@code save-long}: rank 0 a long one, {@code
   *     stop}: all train until they are to stop, {@code mislead}: all say what launchers say, and
   *     fail, {@code elastic}: see {@link ElasticRank}, where a rank that joins may fail, {@code
   *     lost-in-create}: rank 1 is killed while it creates its first sync
   */
  public static void main(String[] args) throws Exception {
    if (System.getenv("GRADIENTSYNC_JOIN") != null && !args[0].equals("elastic-first-host")) {
      Runtime.getRuntime().halt(FAILED);
    }
    if (args[0].equals("lost-in-create") && System.getenv("RANK").equals("1")) {
      loseOnceMet(Path.of(System.getenv("LOST_IN_CREATE")));
    }
    GradientSync sync = GradientSync.create();
    if (sync.launcher().equals("tcp")
        && System.getenv().getOrDefault("GRADIENTSYNC_SECRET", "").isBlank()) {
      throw new IllegalStateException("no secret");
    }
    if (args[0].startsWith("elastic")) {
      ElasticRank.train(sync, args[0]);
      return;
    }
    run(sync, args);
    if (args[0].equals("fail") && sync.rank() == 1) {
      Runtime.getRuntime().halt(FAILED);
    }
    if (args[0].equals("stop")) {
      trainUntilStopped(sync);
      save(SHORT);
    }
    boolean saves = args[0].startsWith("save");
    if (saves) {
      long millis = args[0].equals("save-long") && sync.rank() == 0 ? LONG : SHORT;
      Runtime.getRuntime().addShutdownHook(new Thread(() -> save(millis)));
    }
    Thread.sleep(args[0].equals("wait") || saves ? 60_000 : 0);
    sync.barrier();
  }

  private static void loseOnceMet(Path mark) throws IOException {
    if (Files.exists(mark)) {
      return;
    }
    Files.createFile(mark);
    Path met = WaitingFile.met(Path.of(System.getenv(WaitingFile.VARIABLE)));
    Thread thread =
        new Thread(
            () -> {
              while (!Files.exists(met)) {
                Thread.onSpinWait();
              }
              Runtime.getRuntime().halt(KILLED);
            });
    thread.setDaemon(true);
    thread.start();
  }

  private static void trainUntilStopped(GradientSync sync) {
    List<Parameter> parameters = List.of(new Parameter("weight", DataType.FLOAT32, 3));
    try (GradientBuckets buckets = GradientBuckets.builder(sync, parameters).build()) {
      while (!buckets.stopRequested()) {
        buckets.ready(0);
        buckets.finish();
      }
    }
  }

  private static void save(long millis) {
    try {
      Thread.sleep(millis);
      System.out.println("has saved");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
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
    System.out.println("runs on " + HostName.get());
    String secret = System.getenv().getOrDefault("GRADIENTSYNC_SECRET", "");
    System.out.println("has a secret of " + secret.length() + " characters");
    System.err.println("complains: " + String.join(" ", args));
    sync.barrier(); // so that no launcher ends a rank before it has printed
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
