package org.gradientsync.mpi;

import java.time.Duration;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.test.faults.Faults;

/** The program that {@link FaultsIT}'s jobs run. Its argument names the fault. */
final class FaultPrograms {
  private static final int CALLS = 3;

  private FaultPrograms() {}

  public static void main(String[] args) throws Exception {
    Faults faults = new Faults();
    switch (args[0]) {
      case "die" -> faults.onRank(1).atCall(CALLS).die();
      case "drop" -> faults.onRank(1).atCall(CALLS).drop();
      case "late" -> faults.onRank(1).atCall(CALLS).delay(Duration.ofMillis(10));
      case "never" -> faults.onRank(1).atCall(CALLS + 1).drop();
      default -> throw new IllegalArgumentException(args[0]);
    }
    System.out.println("process=" + ProcessHandle.current().pid() + ".");
    GradientSync.Builder builder = GradientSync.builder().timeout(Duration.ofSeconds(6));
    try (GradientSync sync = faults.install(builder).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 100_000)) {
      for (int call = 1; call <= CALLS; call++) {
        sync.average(buffer);
      }
      if (args[0].equals("drop")) {
        System.out.println("dropped by " + sync.rank());
        Thread.sleep(60_000); // the other rank ends the job earlier
      }
    }
    faults.requireReached();
    System.out.println("reached");
  }
}
