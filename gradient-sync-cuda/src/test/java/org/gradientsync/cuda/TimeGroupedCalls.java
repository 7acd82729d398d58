package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks;

/**
 * Prints how long the averages of a model's gradients take one by one, grouped, in buckets, and as
 * one buffer, by turns: 100 of 4 KB, ResNet-50's 161, and GPT-2 small's 148. Arguments: the device
 * ({@code host} or {@code cuda}) and the number of ranks as threads; without a number, the rank of
 * an mpirun job. {@code -Dwarmup=50} is enough for the host.
 */
final class TimeGroupedCalls {
  private static final int ROUNDS = 20;
  private static final int WARM_UP =
      Integer.getInteger("warmup", 2000); // rounds for the JIT compiler

  private TimeGroupedCalls() {}

  public static void main(String[] args) {
    if (args.length > 1) {
      LocalRanks.run(
          Integer.parseInt(args[1]), builder -> builder.device(args[0]), TimeGroupedCalls::all);
    } else {
      try (GradientSync sync = GradientSync.builder().device(args[0]).create()) {
        all(sync);
      }
    }
  }

  private static void all(GradientSync sync) {
    measure(sync, "100 averages of 4 KB", Collections.nCopies(100, 1024));
    measure(sync, "ResNet-50", resNet50());
    measure(sync, "GPT-2 small", gpt2());
  }

  private static List<Integer> resNet50() {
    List<Integer> counts = new ArrayList<>();
    addConvolution(counts, 7 * 7 * 3, 64);
    int in = 64;
    int[] blocks = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; stage++) {
      int width = 64 << stage;
      for (int block = 0; block < blocks[stage]; block++) {
        addConvolution(counts, in, width);
        addConvolution(counts, 9 * width, width);
        addConvolution(counts, width, 4 * width);
        if (block == 0) {
          addConvolution(counts, in, 4 * width);
        }
        in = 4 * width;
      }
    }
    counts.addAll(List.of(2048 * 1000, 1000));
    return counts;
  }

  /** The weights, and those of the batch normalization behind them. */
  private static void addConvolution(List<Integer> counts, int inputs, int outputs) {
    counts.addAll(List.of(inputs * outputs, outputs, outputs));
  }

  private static List<Integer> gpt2() {
    int width = 768;
    List<Integer> counts = new ArrayList<>(List.of(50257 * width, 1024 * width));
    for (int layer = 0; layer < 12; layer++) {
      counts.addAll(List.of(width, width, 3 * width * width, 3 * width, width * width, width));
      counts.addAll(List.of(width, width, 4 * width * width, 4 * width, 4 * width * width, width));
    }
    counts.addAll(List.of(width, width));
    return counts;
  }

  private static void measure(GradientSync sync, String what, List<Integer> counts) {
    DeviceBuffer[] buffers =
        counts.stream()
            .map(count -> sync.allocate(DataType.FLOAT32, count))
            .toArray(DeviceBuffer[]::new);
    int total = counts.stream().mapToInt(Integer::intValue).sum();
    DeviceBuffer whole = sync.allocate(DataType.FLOAT32, total);
    List<Parameter> parameters =
        IntStream.range(0, counts.size())
            .mapToObj(i -> new Parameter("p" + i, DataType.FLOAT32, counts.get(i)))
            .toList();
    GradientBuckets buckets = GradientBuckets.builder(sync, parameters).build();
    Runnable calls = () -> Arrays.stream(buffers).forEach(sync::average);
    List<Runnable> ways =
        List.of(
            calls,
            () -> sync.grouped(calls),
            () -> {
              for (int i = counts.size() - 1; i >= 0; i--) {
                buckets.ready(i);
              }
              buckets.finish();
            },
            () -> sync.average(whole));
    double[][] times = new double[ways.size()][ROUNDS];
    for (int round = -WARM_UP; round < ROUNDS; round++) {
      for (int way = 0; way < ways.size(); way++) {
        double time = microseconds(sync, buffers[0], buckets.gradient(0), ways.get(way));
        if (round >= 0) {
          times[way][round] = time;
        }
      }
    }
    if (sync.rank() == 0) {
      double[] medians = Arrays.stream(times).mapToDouble(TimeGroupedCalls::median).toArray();
      System.out.printf(
          Locale.ROOT,
          "%d ranks, %s, reducer %s, %s (%d buffers, %.1f MB): one by one %.0f us, grouped %.0f,"
              + " in buckets %.0f, as one buffer %.0f; grouped / in buckets %.2f%n",
          sync.size(),
          sync.device(),
          sync.reducer(),
          what,
          counts.size(),
          total * 4 / 1e6,
          medians[0],
          medians[1],
          medians[2],
          medians[3],
          medians[1] / medians[2]);
    }
    sync.barrier();
    buckets.close();
    whole.close();
    for (DeviceBuffer buffer : buffers) {
      buffer.close();
    }
  }

  private static double median(double[] times) {
    Arrays.sort(times);
    return times[times.length / 2];
  }

  /** Waits for the device by reading elements, of whichever stream the calls used. */
  private static double microseconds(
      GradientSync sync, DeviceBuffer one, DeviceBuffer other, Runnable calls) {
    float[] some = new float[1];
    sync.barrier();
    long begin = System.nanoTime();
    calls.run();
    one.slice(0, 1).copyTo(some);
    other.slice(0, 1).copyTo(some);
    return (System.nanoTime() - begin) / 1e3;
  }
}
