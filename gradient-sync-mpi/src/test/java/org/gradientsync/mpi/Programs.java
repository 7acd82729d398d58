package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.mpi.openmpi.UsersMpi;

/** The programs that {@link JobEndIT}'s jobs run. The first argument selects one. */
final class Programs {
  private Programs() {}

  private static Thread beside;

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "throw" -> throwOnOneRank();
      case "leave" -> leaveWithoutClosing();
      case "exit" -> exitEarly();
      case "signal" -> endBySignal();
      case "signal-and-save" -> endBySignalWithAHook(stopAtShutdown()::get);
      case "signal-and-go-on" -> {
        stopAtShutdown();
        endBySignalWithAHook(() -> false);
      }
      case "threads-and-save" -> {
        AtomicBoolean asked = stopAtShutdown();
        LocalRanks.run(3, sync -> trainAndSave(sync, asked::get));
      }
      case "exit-beside" -> exitBesideCalls();
      case "late" -> comeLate();
      case "suspended" -> beSuspended();
      case "kill" -> killOne();
      case "never" -> neverCreate();
      case "caught" -> catchTheLoss();
      case "stay" -> stay(Duration.ofSeconds(6), 240_000);
      case "stay-a-while" -> stay(Duration.ofMinutes(4), 10_000);
      case "attach" -> attach();
      case "unavailable" -> unavailable();
      case "local" -> localRank();
      case "average" -> average();
      case "context" -> averageWithAnotherContext();
      case "loaders" -> averageBesideAnotherClassLoader();
      case "twice" -> failTwice();
      case "threads" -> LocalRanks.run(2, sync -> System.out.println("of " + sync.size()));
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  private static void average() {
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1)) {
      float[] value = {sync.rank()};
      buffer.copyFrom(value);
      sync.average(buffer);
      buffer.copyTo(value);
      System.out.println(
          "rank "
              + sync.rank()
              + " of "
              + sync.size()
              + ": "
              + sync.reducer()
              + ", average "
              + value[0]);
    }
  }

  /** As on a thread of the common pool, whose context class loader may see the JDK alone. */
  private static void averageWithAnotherContext() {
    Thread.currentThread().setContextClassLoader(ClassLoader.getPlatformClassLoader());
    average();
  }

  /** Another part of the program has loaded mpi.jar, as two web applications of one server do. */
  private static void averageBesideAnotherClassLoader() throws Exception {
    URL jar =
        Class.forName("mpi.MPI", false, Programs.class.getClassLoader())
            .getProtectionDomain()
            .getCodeSource()
            .getLocation();
    URLClassLoader other =
        new URLClassLoader(new URL[] {jar}, ClassLoader.getPlatformClassLoader());
    Class.forName("mpi.MPI", true, other);
    try {
      GradientSync.builder().set("mpi.binding", "java").create();
    } catch (UnavailableException e) {
      System.out.println("caught " + e.getMessage());
    }
    average();
  }

  /** What goes wrong in the initialization of a class has its reason at the first attempt only. */
  private static void failTwice() {
    Set<String> texts = new LinkedHashSet<>();
    for (int attempt = 0; attempt < 2; attempt++) {
      texts.add(assertThrows(UnavailableException.class, GradientSync::create).getMessage());
    }
    System.out.println("texts " + texts.size() + " caught " + texts);
  }

  /** Exits from another thread while the main thread makes calls. */
  private static void exitBesideCalls() {
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000)) {
      while (true) {
        sync.average(buffer);
        if (sync.rank() == 1 && beside == null) {
          beside = new Thread(() -> System.exit(3));
          beside.start();
        }
      }
    }
  }

  private static void throwOnOneRank() {
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000)) {
      for (int i = 0; ; i++) {
        if (i == 3 && sync.rank() == 1) {
          throw new IllegalStateException("the data ran out");
        }
        sync.average(buffer);
      }
    }
  }

  private static void leaveWithoutClosing() {
    GradientSync sync = GradientSync.create();
    sync.average(sync.allocate(DataType.FLOAT32, 1000));
    System.out.println("process=" + ProcessHandle.current().pid() + ".");
    System.out.println("left " + sync.rank());
  }

  /** One rank exits with success while the others still need it. They must not wait forever. */
  private static void exitEarly() {
    GradientSync sync = GradientSync.create();
    sync.barrier();
    if (sync.rank() == 1) {
      System.exit(0);
    }
    sync.barrier();
  }

  private static void endBySignal() throws Exception {
    GradientSync sync = GradientSync.create();
    DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1_000_000);
    sync.average(buffer);
    if (sync.rank() == 1) {
      new ProcessBuilder("kill", "-TERM", "" + ProcessHandle.current().pid()).start();
    }
    while (true) {
      sync.average(buffer);
    }
  }

  /** Asks the training loop to stop, and waits for it. Returns whether it is asked. */
  private static AtomicBoolean stopAtShutdown() {
    Thread training = Thread.currentThread();
    AtomicBoolean asked = new AtomicBoolean();
    Thread hook =
        new Thread(
            () -> {
              asked.set(true);
              try {
                training.join();
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
    Runtime.getRuntime().addShutdownHook(hook);
    return asked;
  }

  /** Sends SIGTERM to rank 1's process, and trains until a rank is asked to stop. */
  private static void trainAndSave(GradientSync sync, BooleanSupplier asked) throws Exception {
    sync.barrier();
    if (sync.rank() == 1) {
      new ProcessBuilder("kill", "-TERM", "" + ProcessHandle.current().pid()).start();
    }
    LongBuffer anyAsked = LongBuffer.allocate(1);
    while (anyAsked.get(0) == 0) {
      sync.average(new float[100_000]);
      anyAsked.put(0, asked.getAsBoolean() ? 1 : 0);
      sync.communicator().allReduce(anyAsked, ReduceOp.MAX);
    }
    if (sync.rank() == 0) {
      Thread.sleep(1000); // the others wait
      System.out.println("saved");
    }
    sync.barrier();
    System.out.println("stopped " + sync.rank());
  }

  private static void endBySignalWithAHook(BooleanSupplier asked) throws Exception {
    try (GradientSync sync = GradientSync.create()) {
      trainAndSave(sync, asked);
    }
  }

  private static void comeLate() throws InterruptedException {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(5)).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000)) {
      if (sync.rank() == 1) {
        Thread.sleep(20_000);
      }
      average(sync, buffer);
    }
  }

  /** As programs do that let only exceptions of their own pass. */
  private static void average(GradientSync sync, DeviceBuffer buffer) {
    try {
      sync.average(buffer);
    } catch (GradientSyncException e) {
      throw new IllegalStateException("the step has failed", e);
    }
  }

  /**
   * Stops all ranks for longer than the time-out, while rank 0 waits for rank 1. Rank 1 arrives
   * shortly after all have continued.
   */
  private static void beSuspended() throws Exception {
    Duration timeout = Duration.ofSeconds(5);
    try (GradientSync sync = GradientSync.builder().timeout(timeout).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000)) {
      long[] ids = new long[2];
      LongBuffer own = LongBuffer.wrap(new long[] {ProcessHandle.current().pid()});
      sync.communicator().allGather(own, LongBuffer.wrap(ids));
      sync.average(buffer);
      if (sync.rank() == 0) {
        String both = ids[0] + " " + ids[1];
        String stop = "sleep 1; kill -STOP " + both + "; sleep 7; kill -CONT " + both;
        new ProcessBuilder("sh", "-c", stop).inheritIO().start();
      } else {
        awaitSuspension(timeout);
        Thread.sleep(300);
      }
      sync.average(buffer);
      System.out.println("averaged " + sync.rank());
    }
  }

  /** Returns after this process has been stopped for some time. */
  private static void awaitSuspension(Duration atLeast) throws InterruptedException {
    long last = System.nanoTime();
    long now = last;
    while (now - last < atLeast.toNanos()) {
      last = now;
      Thread.sleep(10);
      now = System.nanoTime();
    }
  }

  /** Catches the exception and ends normally. The program's end must not wait for the lost rank. */
  private static void catchTheLoss() throws InterruptedException {
    try (GradientSync sync = GradientSync.builder().timeout(Duration.ofSeconds(5)).create()) {
      if (sync.rank() == 1) {
        Thread.sleep(60_000);
      }
      sync.barrier();
    } catch (GradientSyncException e) {
      System.out.println("caught " + e.getMessage());
    }
  }

  /** Ends normally, while rank 1 has more to do. */
  private static void stay(Duration timeout, long millis) throws InterruptedException {
    int rank;
    try (GradientSync sync =
        GradientSync.builder().timeout(timeout).set("dev.late", "1").create()) {
      rank = sync.rank();
      sync.barrier();
    }
    if (rank == 1) {
      Thread.sleep(millis);
      System.out.println("saved");
    }
  }

  private static void killOne() {
    System.out.println("process=" + ProcessHandle.current().pid() + ".");
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1_000_000)) {
      for (int i = 0; ; i++) {
        if (i == 3 && sync.rank() == 1) {

          Runtime.getRuntime().halt(137);
        }
        sync.average(buffer);
      }
    }
  }

  private static void neverCreate() throws InterruptedException {
    if ("1".equals(System.getenv("OMPI_COMM_WORLD_RANK"))) {
      UsersMpi.start();
      Thread.sleep(30_000);
    } else {
      GradientSync.builder().timeout(Duration.ofSeconds(5)).create();
    }
  }

  private static void attach() {
    UsersMpi.start();
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.INT32, 1)) {
      buffer.copyFrom(new int[] {sync.rank()});
      sync.broadcast(buffer, 1);
      int[] value = new int[1];
      buffer.copyTo(value);
      System.out.println("value " + value[0]);
    }
    System.out.println("finalized " + UsersMpi.isFinalized());
    System.out.println("sum " + UsersMpi.sumOfRanks());
    UsersMpi.stop();
  }

  private static void unavailable() {
    try {
      GradientSync.create();
      System.out.println("created");
    } catch (GradientSyncException e) {
      System.out.println("caught " + e.getMessage());
    }
  }

  private static void localRank() {
    try (GradientSync sync = GradientSync.create()) {
      System.out.println(
          "local " + sync.localRank() + " of " + sync.localSize() + " by " + sync.reducer());
    }
  }
}
