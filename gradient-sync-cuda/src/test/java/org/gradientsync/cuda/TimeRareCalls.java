package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.gradientsync.BucketHook;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.BackendDevice;

/**
 * Prints what calls cost that {@code perf} does not have, beside the calls that it has, by turns.
 * Arguments: {@code counts}, {@code sparse} or {@code powersgd}; the device ({@code host} or {@code
 * cuda}); the number of ranks as threads, or none for the rank of an mpirun job.
 */
final class TimeRareCalls {
  private static final int ROUNDS = 7;
  private static final double ROUND_SECONDS = 0.1; // so many calls in a round

  private final GradientSync sync;
  private final BackendDevice device;
  private final List<DeviceBuffer> buffers = new ArrayList<>();

  private TimeRareCalls(GradientSync sync) {
    this.sync = sync;
    device = (BackendDevice) sync.device();
  }

  public static void main(String[] args) {
    if (args.length > 2) {
      int ranks = Integer.parseInt(args[2]);
      LocalRanks.run(
          ranks, b -> b.device(args[1]), sync -> new TimeRareCalls(sync).measure(args[0]));
    } else {
      try (GradientSync sync = GradientSync.builder().device(args[1]).create()) {
        new TimeRareCalls(sync).measure(args[0]);
      }
    }
  }

  private void measure(String what) {
    print(
        "%s: %d ranks, %s, reducer %s; us per call: median of %d rounds, least, most",
        what, sync.size(), sync.device(), sync.reducer(), ROUNDS);
    switch (what) {
      case "counts" -> List.of(4L << 10, 1L << 20, 64L << 20, 256L << 20).forEach(this::counts);
      case "sparse" -> List.of(300_000L, 30_000_000L).forEach(this::sparse);
      case "powersgd" -> List.of(DataType.FLOAT32, DataType.BFLOAT16).forEach(this::powerSgd);
      default -> throw new IllegalArgumentException("counts, sparse or powersgd: " + what);
    }
  }

  private DeviceBuffer floats(long count) {
    buffers.add(sync.allocate(DataType.FLOAT32, count));
    return buffers.get(buffers.size() - 1);
  }

  private void close() {
    device.stream().await();
    sync.barrier();
    buffers.forEach(DeviceBuffer::close);
    buffers.clear();
  }

  /**
   * The larger buffer has the bytes. Uneven: rank 0 has half of an equal part, the last the rest.
   */
  private void counts(long bytes) {
    int n = sync.size();
    long part = bytes / Float.BYTES / n;
    long[] equal = LongStream.generate(() -> part).limit(n).toArray();
    long[] uneven = equal.clone();
    uneven[0] -= part / 2;
    uneven[n - 1] += part / 2;
    DeviceBuffer all = floats(part * n);
    Map<String, Runnable> calls = new LinkedHashMap<>();
    DeviceBuffer own = floats(part);
    calls.put("all-gather", () -> sync.allGather(own, all));
    calls.put("reduce-scatter", () -> sync.reduceScatter(all, own, ReduceOp.AVERAGE));
    DeviceBuffer to = floats(part * n);
    calls.put("all-to-all", () -> sync.allToAll(all, to));
    uneven(calls, "equal counts", equal, all);
    uneven(calls, "uneven counts", uneven, all);
    time(bytes / 1024 + " KiB", calls);
    close();
  }

  private void uneven(Map<String, Runnable> calls, String name, long[] counts, DeviceBuffer all) {
    long mine = counts[sync.rank()];
    DeviceBuffer some = floats(mine);
    DeviceBuffer received = floats(mine * sync.size());
    long[] from = LongStream.generate(() -> mine).limit(sync.size()).toArray();
    calls.put("all-gather, " + name, () -> sync.allGather(some, all, counts));
    calls.put(
        "reduce-scatter, " + name, () -> sync.reduceScatter(all, some, counts, ReduceOp.AVERAGE));
    calls.put("all-to-all, " + name, () -> sync.allToAll(all, counts, received, from));
  }

  /** 4,096 rows of each rank at random places, and the whole table. */
  private void sparse(long tableRows) {
    SplittableRandom random = new SplittableRandom(sync.rank());
    long[] indices = random.longs(4096, 0, tableRows).toArray();
    SparseRows rows = new SparseRows(tableRows, 8, indices, new float[indices.length * 8]);
    DeviceBuffer table = floats(tableRows * 8);
    Map<String, Runnable> calls = new LinkedHashMap<>();
    calls.put("sparse, 4096 rows a rank", () -> sync.average(rows));
    SparseRows onDevice = new SparseRows(tableRows, 8, indices, floats(indices.length * 8));
    calls.put("sparse, rows in a buffer", () -> sync.average(onDevice));
    calls.put("dense, on the device", () -> sync.average(table));
    time(tableRows + " x 8", calls);
    close();
  }

  /** Steps of one parameter; each copies a gradient into the bucket first. */
  private void powerSgd(DataType type) {
    List<Parameter> model = List.of(new Parameter("m", type, 4096L * 4096));
    DeviceBuffer numbers = floats(4096L * 4096);
    float[] random = new float[4096 * 4096];
    SplittableRandom generator = new SplittableRandom(sync.rank());
    for (int i = 0; i < random.length; i++) {
      random[i] = (float) generator.nextDouble() - 0.5f;
    }
    numbers.copyFrom(random);
    DeviceBuffer source = sync.allocate(type, random.length);
    buffers.add(source);
    if (type == DataType.FLOAT32) {
      device.copy(numbers, source);
    } else {
      device.convert(numbers, source);
    }
    Map<String, Runnable> calls = new LinkedHashMap<>();
    BucketHook hook = new PowerSgd(4).rows("m", 4096);
    try (GradientBuckets compressed = GradientBuckets.builder(sync, model).hook(hook).build();
        GradientBuckets plain = GradientBuckets.builder(sync, model).build()) {
      calls.put("PowerSGD of rank 4", () -> step(compressed, source));
      calls.put("average", () -> step(plain, source));
      time(type + " 4096 x 4096", calls);
    }
    close();
  }

  private void step(GradientBuckets buckets, DeviceBuffer source) {
    device.copy(source, buckets.gradient(0));
    buckets.ready(0);
    buckets.finish();
  }

  /** Times all calls by turns, and prints a line for each. Collective. */
  private void time(String size, Map<String, Runnable> calls) {
    Map<String, double[]> micros = new LinkedHashMap<>();
    for (int round = -1; round < ROUNDS; round++) { // the first one warms up
      for (Map.Entry<String, Runnable> call : calls.entrySet()) {
        double once = seconds(call.getValue(), round < 0 ? 3 : 1);
        int many = (int) sync.communicator().max(Math.max(1, ROUND_SECONDS / once));
        many = Math.min(many, 5000);
        double took = sync.communicator().max(seconds(call.getValue(), many)) * 1e6;
        if (round >= 0) {
          micros.computeIfAbsent(call.getKey(), key -> new double[ROUNDS])[round] = took;
        }
      }
    }
    micros.forEach(
        (name, each) -> {
          Arrays.sort(each);
          print(
              "%-20s %-32s %12.1f %12.1f %12.1f",
              size, name, each[ROUNDS / 2], each[0], each[ROUNDS - 1]);
        });
  }

  private double seconds(Runnable call, int times) {
    device.stream().await();
    sync.barrier();
    long begin = System.nanoTime();
    for (int i = 0; i < times; i++) {
      call.run();
    }
    device.stream().await();
    return (System.nanoTime() - begin) / 1e9 / times;
  }

  private void print(String format, Object... arguments) {
    if (sync.rank() == 0) {
      System.out.printf(Locale.ROOT, format + "%n", arguments);
    }
  }
}
