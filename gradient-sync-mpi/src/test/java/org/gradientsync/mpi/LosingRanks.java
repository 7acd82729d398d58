package org.gradientsync.mpi;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * The program that the jobs of {@link LostRank} run. It loses rank 1 in a manner and phase given by
 * its arguments, and in one manner also rank 2. The other ranks average until they throw.
 */
final class LosingRanks {
  private static final int LOST = 1;
  private static final int ALSO_LOST = 2;
  private static final int CALLS = 5;

  private LosingRanks() {}

  public static void main(String[] args) throws Exception {
    String manner = args[0];
    String phase = args[1];
    try (GradientSync sync =
            GradientSync.builder()
                .reducer(args[2])
                .timeout(Duration.ofSeconds(3))
                .set("dev.late", "1")
                .reports(Path.of(args[3].replace("HOST", host())))
                .device(args[4])
                .create();
        DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 3_000_000).named("layer3");
        DeviceBuffer last = gradient.slice(gradient.count() - 1, 1)) {
      System.out.println("reducer=" + sync.reducer() + " process=" + ProcessHandle.current().pid());
      boolean lost = sync.rank() == LOST;
      boolean both = manner.equals("stick-and-kill") && sync.rank() == ALSO_LOST;
      for (int call = 0; !manner.equals("late") || call < 2 * CALLS; call++) {
        if (lost
            && (phase.equals("before") && call == 0 || phase.equals("between") && call == CALLS)) {
          lose(manner);
        } else if (both && call == CALLS) {
          lose("kill");
        } else if (lost && phase.equals("during") && call == CALLS) {
          Thread other = new Thread(() -> loseInAMoment(manner));
          other.setDaemon(true);
          other.start();
        }
        sync.average(gradient);
        last.copyTo(new float[1]); // waits, as averages may not
      }
      System.out.println("rank " + sync.rank() + " has come to the end");
    }
  }

  private static String host() throws java.io.IOException {
    return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
  }

  private static void loseInAMoment(String manner) {
    try {
      Thread.sleep(50); // during one of the next calls
      lose(manner);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void lose(String manner) throws InterruptedException {
    switch (manner) {
      case "kill" -> signal("KILL");
      case "stop" -> signal("STOP");
      case "throw" -> throw new IllegalStateException("the data ran out");
      case "stick", "stick-and-kill" -> stickInUserCode();
      case "late" -> Thread.sleep(2_000);
      default -> throw new IllegalArgumentException(manner);
    }
  }

  private static void stickInUserCode() throws InterruptedException {
    Thread.sleep(300_000);
  }

  private static void signal(String name) {
    try {
      new ProcessBuilder("kill", "-" + name, Long.toString(ProcessHandle.current().pid()))
          .inheritIO()
          .start()
          .waitFor();
    } catch (java.io.IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
