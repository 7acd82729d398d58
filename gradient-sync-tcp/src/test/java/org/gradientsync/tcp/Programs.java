package org.gradientsync.tcp;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Signals;

/** What the ranks of {@link Ranks} run. The first argument selects a program. */
final class Programs {
  private Programs() {}

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "average" -> average(1);
      case "average-much" -> average(100_000);
      case "leave" -> GradientSync.create().average(new float[1000]);
      case "throw" ->
          loseOne(
              () -> {
                throw new IllegalStateException("the data ran out");
              });
      case "kill" -> loseOne(Programs::kill);
      case "die-in-a-call" -> dieInACall();
      case "signal" ->
          loseOne(
              () -> {
                Signals.raise("TERM");
                Thread.sleep(600_000);
              });
      case "exit" -> loseOne(() -> System.exit(3));
      case "return" -> loseOne(() -> {});
      case "late" -> late();
      case "stick-and-kill" -> loseTwo();
      case "unavailable" -> unavailable();
      case "exhausted" -> exhausted();
      case "by-settings" -> bySettings();
      case "of-version" -> {
        JobStart.version = args[1];
        unavailable();
      }
      case "go-on" -> goOn(Integer.parseInt(args[1]));
      case "time" -> time(Integer.parseInt(args[1]), Integer.parseInt(args[2]), args[3]);
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  /** Has no file descriptors left when it joins its job. */
  private static void exhausted() throws Exception {
    ThreadRanks.run( // loads what a start needs
        Ranks.freePort(),
        2,
        (rank, builder) -> {
          try (GradientSync sync = builder.create()) {
            return sync.size();
          }
        });
    Class.forName(Descriptors.class.getName());
    Class.forName(UnavailableException.class.getName());
    List<InputStream> open = new ArrayList<>();
    AtomicBoolean over = new AtomicBoolean();
    CountDownLatch full = new CountDownLatch(1);
    Thread filler = // goes on, because threads of the job before may still close some
        new Thread(
            () -> {
              while (!over.get()) {
                try {
                  open.add(new FileInputStream("/dev/null"));
                } catch (IOException e) {
                  full.countDown();
                }
              }
            });
    filler.start();
    full.await();
    unavailable();
    over.set(true);
    filler.join();
    for (InputStream each : open) {
      each.close();
    }
  }

  private static void bySettings() {
    GradientSync.Builder builder = GradientSync.builder().set("tcp.rank", "0").set("tcp.size", "1");
    try (GradientSync sync = builder.set("tcp.master", "127.0.0.1:1").create()) {
      System.out.println("has settings of " + sync.size());
    }
  }

  private interface Task {
    void run() throws Exception;
  }

  private static void average(int count) {
    try (GradientSync sync = GradientSync.create()) {
      float[] value = new float[count];
      Arrays.fill(value, sync.rank());
      sync.average(value);
      System.out.println(
          "rank "
              + sync.rank()
              + " of "
              + sync.size()
              + ", local "
              + sync.localRank()
              + " of "
              + sync.localSize()
              + ": "
              + sync.reducer()
              + ", average "
              + value[0]);
    }
  }

  private static void loseOne(Task task) throws Exception {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(60)).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1_000_000)) {
      for (int i = 0; ; i++) {
        if (i == 3 && sync.rank() == 1) {
          task.run();
          return;
        }
        sync.average(buffer);
      }
    }
  }

  /** One rank dies in an average, and the others end as soon as they know. */
  private static void dieInACall() {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(60)).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 4_000_000)) {
      for (int i = 0; ; i++) {
        if (i == 3 && sync.rank() == 1) {
          new Thread(() -> Runtime.getRuntime().halt(9)).start();
        }
        sync.average(buffer);
      }
    } catch (RankLostException e) {
      System.out.println("caught " + e.getMessage());
      System.exit(e.exitCode());
    }
  }

  /** One rank does not come, so that all write reports. */
  private static void late() throws Exception {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(4)).create()) {
      if (sync.rank() == 1) {
        Thread.sleep(600_000); // the others end it
      }
      sync.barrier();
    }
  }

  /** The same, while another rank dies. */
  private static void loseTwo() throws Exception {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(4)).create()) {
      sync.barrier();
      if (sync.rank() == 1) {
        Thread.sleep(600_000); // the others end it
      } else if (sync.rank() == 2) {
        kill();
      }
      sync.barrier();
    }
  }

  private static void kill() throws IOException, InterruptedException {
    long self = ProcessHandle.current().pid();
    new ProcessBuilder("kill", "-KILL", "" + self).start().waitFor();
  }

  private static void unavailable() {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(6)).create()) {
      System.out.println("created " + sync.rank());
    } catch (GradientSyncException e) {
      System.out.println("caught " + e.getMessage());
    }
  }

  /** Averages many times, and checks each result. */
  private static void goOn(int times) throws Exception {
    try (GradientSync sync = GradientSync.builder().reducer("tcp").create()) {
      System.out.println("ready");
      float[] values = new float[30_000];
      for (int i = 0; i < times; i++) {
        Arrays.fill(values, sync.rank() + i);
        sync.average(values);
        float expected = (sync.size() - 1) / 2f + i;
        for (float value : values) {
          if (value != expected) {
            throw new IllegalStateException("wrong: " + value + ", expected=" + expected);
          }
        }
        Thread.sleep(2);
      }
      System.out.println("averaged");
    }
  }

  /** Prints the median time of an average. */
  private static void time(int bytes, int times, String reducer) {
    try (GradientSync sync =
            GradientSync.builder()
                .reducer(reducer)
                .device("host")
                .set("dev.rendezvous", System.getProperty("rendezvous", ""))
                .create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, bytes / 4)) {
      long[] nanos = new long[times];
      for (int i = -times / 2; i < times; i++) {
        sync.barrier();
        long start = System.nanoTime();
        sync.average(buffer);
        nanos[Math.max(i, 0)] = System.nanoTime() - start;
      }
      Arrays.sort(nanos);
      if (sync.rank() == 0) {
        System.out.printf(
            Locale.ROOT,
            "%d bytes: median %.1f us, best %.1f us%n",
            bytes,
            nanos[times / 2] / 1e3,
            nanos[0] / 1e3);
      }
    }
  }
}
