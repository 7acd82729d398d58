package org.gradientsync.tcp;

import java.io.File;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.core.backend.ProcessFileNames;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.core.sync.Admission;

/**
 * Trains in each rank until rank 1 has got signals.
 *
 * <p>Arguments: {@code at-once}, after which all ranks stop and end well, or {@code apart}, after
 * which rank 1 ends while the others do something else; the signal. Or {@code abort}: rank 1 fails
 * while the others do something else. Or {@code after}: when its only rank has stopped, the next
 * signal ends it.
 */
final class StopProgram {
  private static final int SIGNAL_AT = 3; // steps
  private static final int APART_MILLIS = 100;

  private StopProgram() {}

  public static void main(String[] args) throws Exception {
    GradientSync.Builder builder = GradientSync.builder().timeout(Duration.ofSeconds(60));
    boolean apart = args[0].equals("apart");
    try (GradientSync sync = builder.stopOnSignal(true).create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1_000_000);
        GradientBuckets buckets =
            GradientBuckets.builder(sync, List.of(new Parameter("w", DataType.FLOAT32, 10)))
                .build()) {
      long other = processOf(sync, Math.min(1, sync.size() - 1));
      for (int step = 0; !buckets.stopRequested(); step++) {
        if (step == SIGNAL_AT && args[0].equals("after")) {
          Signals.raise(args[1]);
          while (!((Admission) sync).isStopRequested()) {
            Thread.sleep(1);
          }
        } else if (step == SIGNAL_AT && args[0].equals("abort")) {
          if (sync.rank() == 1) {
            throw new IllegalStateException("on purpose");
          }
          Thread.sleep(60_000);
        } else if (step == SIGNAL_AT && sync.rank() == 1) {
          Signals.raise(args[1]);
          while (!((Admission) sync).isStopRequested()) {
            Thread.sleep(1);
          }
          Signals.raise(args[1]);
          while (apart) {
            Thread.sleep(APART_MILLIS);
            Signals.raise(args[1]);
          }
        } else if (step == SIGNAL_AT && apart) {
          // It does not wait for this rank, which makes no call.
          ProcessHandle.of(other).ifPresent(process -> process.onExit().join());
          System.out.println("left " + filesOf(other) + " files");
        }
        sync.average(buffer);
        buckets.ready(0);
        buckets.finish();
      }
    }
    System.out.println("ended well");
    if (args[0].equals("after")) {
      Runtime.getRuntime()
          .addShutdownHook(new Thread(() -> System.out.println("its hook has run")));
      Signals.raise(args[2]);
      Thread.sleep(60_000);
    }
  }

  private static long processOf(GradientSync sync, int rank) {
    ByteBuffer number = ByteBuffer.allocate(Long.BYTES).putLong(ProcessHandle.current().pid());
    return ByteBuffer.wrap(sync.communicator().broadcast(number.array(), rank)).getLong();
  }

  private static int filesOf(long process) {
    String start = ProcessFileNames.of("gradient-sync-", process);
    String[] left = new File("/dev/shm").list((folder, name) -> name.startsWith(start));
    return left.length;
  }
}
