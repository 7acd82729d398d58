package org.gradientsync.tcp;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.elastic.ElasticLoop;
import org.gradientsync.elastic.ElasticTraining;

/** A training whose processes are killed and started again. */
final class ElasticProgram implements ElasticLoop {
  private static final int COUNT = Integer.getInteger("count", 20_011);
  private static final int PARTS = 3;

  private final DeviceBuffer weights;
  private final DeviceBuffer moments;
  private final TreeMap<Long, Integer> sizes = new TreeMap<>(); // by step
  private final long pauseMillis;
  private final Path folder;
  private GradientSync sync;
  private GradientBuckets buckets;

  private ElasticProgram(GradientSync sync, Path folder, long pauseMillis) {
    this.folder = folder;
    this.pauseMillis = pauseMillis;
    weights = sync.allocate(DataType.FLOAT32, PARTS * COUNT);
    moments = sync.allocate(DataType.FLOAT32, PARTS * COUNT);
  }

  /**
   * Runs one rank.
   *
   * @param args the number of steps, the milliseconds of a step, the least number of ranks, a
   *     folder for results and progress
   */
  public static void main(String[] args) throws Exception {
    JobStart.version = System.getProperty("version", JobStart.version);
    long steps = Long.parseLong(args[0]);
    GradientSync sync =
        GradientSync.builder().timeout(Duration.ofSeconds(60)).stopOnSignal(true).create();
    ElasticProgram loop = new ElasticProgram(sync, Path.of(args[3]), Long.parseLong(args[1]));
    try (ElasticTraining training =
        ElasticTraining.builder(sync, loop)
            .minRanks(Integer.parseInt(args[2]))
            .waitForRanks(Duration.ofSeconds(20))
            .build()) {
      if (!training.run(Long.getLong("first", 0), steps)) {
        System.out.println("left");
        return;
      }
      float[] result = new float[PARTS * COUNT];
      loop.weights.copyTo(result);
      StringBuilder text = new StringBuilder();
      loop.sizes.forEach((step, size) -> text.append(step).append('=').append(size).append(' '));
      for (float value : result) {
        text.append(String.format(Locale.ROOT, "\n%08x", Float.floatToRawIntBits(value)));
      }
      Files.writeString(
          loop.folder.resolve("result-" + ProcessHandle.current().pid()), text.toString());
      System.out.println("trained as " + training.sync().rank() + " of " + training.sync().size());
    }
    loop.weights.close();
    loop.moments.close();
  }

  static float gradient(float weight, long step, int rank, int size, int index) {
    return weight * 0.25f + (step % 7 - 3) * 0.125f + rank * 0.1f / size + index % 13 * 0.01f;
  }

  @Override
  public void begin(GradientSync newSync) {
    sync = newSync;
    List<Parameter> parameters =
        IntStream.range(0, PARTS)
            .mapToObj(i -> new Parameter("part" + i, DataType.FLOAT32, COUNT))
            .toList();
    buckets = GradientBuckets.builder(sync, parameters).bucketBytes(100_000).build();
  }

  @Override
  public void compute(long step) {
    sizes.tailMap(step, true).clear();
    sizes.put(step, sync.size());
    FloatBuffer all = weights.floats();
    for (int part = PARTS - 1; part >= 0; part--) {
      FloatBuffer own = buckets.gradient(part).floats();
      for (int i = 0; i < COUNT; i++) {
        int at = part * COUNT + i;
        own.put(i, gradient(all.get(at), step, sync.rank(), sync.size(), at));
      }
      buckets.ready(part);
    }
    buckets.finish();
    try {
      Thread.sleep(Files.exists(folder.resolve("fast")) ? 0 : pauseMillis);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void update(long step) {
    FloatBuffer all = weights.floats();
    FloatBuffer means = moments.floats();
    for (int part = 0; part < PARTS; part++) {
      FloatBuffer average = buckets.gradient(part).floats();
      for (int i = 0; i < COUNT; i++) {
        int at = part * COUNT + i;
        float moment = 0.875f * means.get(at) + average.get(i);
        means.put(at, moment);
        all.put(at, all.get(at) - 0.5f * moment);
      }
    }
    try {
      Path mine = folder.resolve("step-" + ProcessHandle.current().pid());
      Files.writeString(mine, step + " " + sync.size() + " " + System.nanoTime());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void end() {
    buckets.close();
  }

  @Override
  public List<DeviceBuffer> state() {
    return List.of(weights, moments);
  }

  @Override
  public byte[] save() {
    StringBuilder text = new StringBuilder();
    sizes.forEach((step, size) -> text.append(step).append(' ').append(size).append(' '));
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }

  @Override
  public void load(byte[] saved) {
    sizes.clear();
    String[] words = new String(saved, StandardCharsets.US_ASCII).split(" ");
    for (int i = 0; i + 1 < words.length; i += 2) {
      sizes.put(Long.valueOf(words[i]), Integer.valueOf(words[i + 1]));
    }
  }
}
