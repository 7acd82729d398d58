package org.gradientsync.mpi;

import java.nio.file.Path;
import java.time.Duration;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;

/**
 * The program that the jobs of {@link LinkedNodesIT} run: averages over links, in the middle of
 * which something happens to node 2. Arguments: the folder of the links, what happens, and the
 * order of sums.
 */
final class AveragesOverLinks {
  private static final int COUNT = 300_003; // half a second for each average at 20 Mbit/s
  private static final int CALLS = 4;

  private AveragesOverLinks() {}

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    String fault = args[1];
    GradientSync sync =
        GradientSync.builder().timeout(Duration.ofSeconds(4)).set("order", args[2]).create();
    System.out.println("rank " + sync.rank() + " uses " + sync.reducer());
    DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, COUNT).named("layer3");
    try {
      for (int call = 0; call < CALLS; call++) {
        if (call == CALLS - 2) {
          strikeInAMoment(fault, folder, sync.rank());
        }
        average(sync, gradient, call);
      }
      System.out.println("rank " + sync.rank() + " has all averages");
    } catch (GradientSyncException e) {
      System.out.println("rank " + sync.rank() + " caught " + e.getMessage());
      if (fault.equals("cut") && sync.rank() == 0) {
        execute(folder.resolve("join").toString(), "2"); // so that mpirun can end the job
      }
    }
    gradient.close();
    sync.close();
    System.out.println("rank " + sync.rank() + " has closed");
  }

  /** With numbers whose sum is exact. */
  private static void average(GradientSync sync, DeviceBuffer gradient, int call) {
    float[] values = new float[COUNT];
    int size = sync.size();
    for (int i = 0; i < COUNT; i++) {
      values[i] = size * (i % 1000) + (sync.rank() + call) * 4;
    }
    gradient.copyFrom(values);
    sync.average(gradient);
    gradient.copyTo(values);
    for (int i = 0; i < COUNT; i++) {
      float expected = size * (i % 1000) + (2 * (size - 1) + call * 4);
      if (values[i] != expected) {
        throw new AssertionError("wrong: " + values[i] + ", expected " + expected + " at " + i);
      }
    }
  }

  private static void strikeInAMoment(String fault, Path folder, int rank) {
    Thread other =
        new Thread(
            () -> {
              try {
                Thread.sleep(100);
                strike(fault, folder, rank);
              } catch (Exception e) {
                throw new IllegalStateException(e);
              }
            });
    other.setDaemon(true);
    other.start();
  }

  private static void strike(String fault, Path folder, int rank) throws Exception {
    if (fault.equals("cut") && rank == 0) {
      execute(folder.resolve("cut").toString(), "2");
    } else if (fault.equals("kill") && rank == 2) {
      execute("kill", "-9", "-1"); // all processes of the node
    } else if (fault.equals("stop") && rank == 3) {
      execute("kill", "-STOP", Long.toString(ProcessHandle.current().pid()));
    }
  }

  private static void execute(String... command) throws Exception {
    new ProcessBuilder(command).inheritIO().start().waitFor();
  }
}
