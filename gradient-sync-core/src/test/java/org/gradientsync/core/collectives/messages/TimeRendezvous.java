package org.gradientsync.core.collectives.messages;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.stream.StreamSupport;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.launch.LaunchedJob;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;

/**
 * Measures the cost of the rendezvous when messages carry the data: averages with and without it,
 * in turns. A program for mpirun, not a test; rank 0 prints a line of JSON for each size. With
 * {@code -Dgradientsync.dev.rendezvous=messages}, ranks of one node use messages, as ranks of
 * several nodes do.
 */
public final class TimeRendezvous {
  private static final int ROUNDS = 21;

  private TimeRendezvous() {}

  /** Takes no arguments. */
  public static void main(String[] args) {
    Settings settings = new Settings(Map.of());
    Launcher launcher =
        StreamSupport.stream(ServiceLoader.load(Launcher.class).spliterator(), false)
            .filter(Launcher::launched)
            .findFirst()
            .orElseThrow();
    ProcessGroup world = LaunchedJob.connect(launcher, settings);
    try (ProcessGroup group = world.split(0, world.rank(), settings.timeouts());
        HostDevice device = new HostDevice();
        MessageReducer reducer = new MessageReducer("mpi", group, device)) {
      RendezvousChoice.choose(group, settings, true);
      for (long bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
        try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, bytes / Float.BYTES)) {
          int calls = (int) Math.max(5, Math.min(400, (8 << 20) / bytes));
          double[] with = new double[ROUNDS];
          double[] without = new double[ROUNDS];
          for (int round = -2; round < ROUNDS; round++) { // the first rounds warm up
            double met = micros(group, reducer, buffer, calls, true);
            double unmet = micros(group, reducer, buffer, calls, false);
            if (round >= 0) {
              with[round] = met;
              without[round] = unmet;
            }
          }
          if (group.rank() == 0) {
            double median = median(with);
            double less = median(without);
            System.out.printf(
                Locale.ROOT,
                "{\"ranks\": %d, \"bytes\": %d, \"micros\": %.2f, \"microsWithoutMeeting\": %.2f, \"ratio\": %.3f}%n",
                group.size(),
                bytes,
                median,
                less,
                median / less);
          }
        }
      }
    }
  }

  private static double micros(
      ProcessGroup group, MessageReducer reducer, DeviceBuffer buffer, int calls, boolean meets) {
    CollectiveCall call = CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE);
    synchronized (group) {
      group.run(call, met -> {}); // aligns the ranks
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        if (meets) {
          reducer.run(call);
        } else {
          reducer.move(call);
        }
      }
      return (System.nanoTime() - start) / 1e3 / calls;
    }
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
