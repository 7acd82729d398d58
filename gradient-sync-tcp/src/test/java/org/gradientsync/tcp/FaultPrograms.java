package org.gradientsync.tcp;

import java.time.Duration;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.test.faults.Faults;

/** The program of {@link FaultsIT}'s jobs. Its argument names the fault of rank 1. */
final class FaultPrograms {
  private static final int CALLS = 3;

  private FaultPrograms() {}

  public static void main(String[] args) throws Exception {
    Faults faults = new Faults();
    switch (args[0]) {
      case "die" -> faults.onRank(1).atCall(CALLS).die();
      case "drop" -> faults.onRank(1).atCall(CALLS).drop();
      case "delay" -> faults.onRank(1).atCall(CALLS).delay(Duration.ofMillis(10));
      case "mismatch" -> faults.onRank(1).atCall(CALLS).mismatch();
      default -> throw new IllegalArgumentException(args[0]);
    }
    GradientSync.Builder builder = GradientSync.builder().timeout(Duration.ofSeconds(8));
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
