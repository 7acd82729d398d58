package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import org.gradientsync.BucketHook;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.LossScaler;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;
import org.gradientsync.Synchronization;
import org.gradientsync.hooks.Compression;
import org.gradientsync.hooks.PowerSgd;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compiles the code of docs/train-on-many-gpus.md, and checks what it trains. */
class TrainingGuideTest {
  private static final String PAGE = "../docs/train-on-many-gpus.md";
  private static final String THIS =
      "src/test/java/org/gradientsync/examples/TrainingGuideTest.java";
  private static final String PROGRAM = "src/test/java/org/gradientsync/examples/Train.java";
  private static final int[] COUNTS = {3, 700, 2};
  private static final int ELEMENTS = Arrays.stream(COUNTS).sum();
  private static final int STEPS = 5;
  private static final float RATE = 0.3f;

  // What the page shows, from here ...

  interface Model {
    List<Parameter> parameters(); // in the order of the forward pass

    List<DeviceBuffer> weights(); // in the same order, allocated by the sync

    void forward(int batch);

    void backward(int layer, DeviceBuffer gradient, float scale, boolean add);

    void update(int layer, DeviceBuffer gradient, float rate);

    void save(Path file, long steps) throws IOException;

    long load(Path file) throws IOException; // how many steps were done
  }

  record Groups(GradientSync tensor, GradientSync data, GradientSync pipeline) {
    static Groups of(GradientSync sync, int tensorRanks, int dataRanks) {
      int tensor = sync.rank() % tensorRanks; // neighbors, because they exchange the most
      int data = sync.rank() / tensorRanks % dataRanks;
      int stage = sync.rank() / (tensorRanks * dataRanks);
      return new Groups(
          sync.split(stage * dataRanks + data, tensor),
          sync.split(stage * tensorRanks + tensor, data),
          sync.split(data * tensorRanks + tensor, stage));
    }
  }

  static void trainAlone(Model model, DeviceBuffer[] gradients, int steps, float rate) {
    for (int step = 0; step < steps; step++) {
      model.forward(step);
      for (int layer = gradients.length - 1; layer >= 0; layer--) {
        model.backward(layer, gradients[layer], 1, false);
      }
      for (int layer = 0; layer < gradients.length; layer++) {
        model.update(layer, gradients[layer], rate);
      }
    }
  }

  static void train(GradientSync sync, Model model, int steps, float rate) {
    try (GradientBuckets buckets = GradientBuckets.builder(sync, model.parameters()).build()) {
      buckets.broadcast(model.weights(), 0); // rank 0's, on every rank
      IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), rate);
      for (int step = 0; step < steps; step++) {
        int batch = step * sync.size() + sync.rank(); // another one on each rank
        model.forward(batch);
        for (int layer = buckets.size() - 1; layer >= 0; layer--) {
          model.backward(layer, buckets.gradient(layer), 1, false);
          buckets.ready(layer); // the last one of a bucket starts the bucket's average
        }
        buckets.finish(update); // the update of each layer whose average is there
      }
    }
  }

  static void threads(int steps, float rate) {
    LocalRanks.run(4, sync -> train(sync, new MyModel(sync), steps, rate));
  }

  static void process(int steps, float rate) {
    try (GradientSync sync = GradientSync.create()) {
      train(sync, new MyModel(sync), steps, rate);
    }
  }

  static void pass(Model model, GradientBuckets buckets, int batch, float scale, boolean add) {
    model.forward(batch);
    for (int layer = buckets.size() - 1; layer >= 0; layer--) {
      model.backward(layer, buckets.gradient(layer), scale, add);
      buckets.ready(layer);
    }
  }

  static void accumulate(
      GradientSync sync, Model model, int batches, GradientBuckets buckets, IntConsumer update) {
    for (int step = 0; step < STEPS; step++) {
      int first = (step * sync.size() + sync.rank()) * batches;
      buckets.noSync(
          () -> {
            for (int i = 0; i < batches - 1; i++) {
              pass(model, buckets, first + i, 1f / batches, i > 0);
            }
          });
      pass(model, buckets, first + batches - 1, 1f / batches, batches > 1);
      buckets.finish(update);
    }
  }

  static void uneven(GradientSync sync, Model model, int[] batches, float rate) {
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, model.parameters()).unevenSteps().build()) {
      buckets.broadcast(model.weights(), 0);
      IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), rate);
      for (int batch : batches) { // more of them on some ranks than on others
        pass(model, buckets, batch, 1, false);
        buckets.finish(update);
      }
      buckets.join(() -> IntStream.range(0, buckets.size()).forEach(update));
    }
  }

  static GradientSync stoppable() {
    GradientSync sync = GradientSync.builder().stopOnSignal(true).create();
    return sync;
  }

  static int untilStopped(
      GradientSync sync, GradientBuckets buckets, Model model, IntConsumer update, Path file)
      throws IOException {
    int step = 0;
    while (!buckets.stopRequested()) {
      pass(model, buckets, step++ * sync.size() + sync.rank(), 1, false);
      buckets.finish(update);
    }
    if (sync.rank() == 0) {
      model.save(file, step);
    }
    return step;
  }

  static void skipped(GradientSync sync, Model model, int layer, float rate) {
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, model.parameters())
            .missing(GradientBuckets.Missing.SKIP)
            .divisor(GradientBuckets.Divisor.CONTRIBUTING_RANKS) // those that have used a layer
            .build()) {
      buckets.broadcast(model.weights(), 0);
      model.forward(sync.rank());
      model.backward(layer, buckets.gradient(layer), 1, false);
      buckets.ready(layer); // and no other one
      buckets.finish(i -> model.update(i, buckets.gradient(i), rate));
    }
  }

  static float[] predictions(GradientSync sync, DeviceBuffer mine) {
    long[] counts = sync.counts(mine.count()); // of each rank, on every rank
    long total = Arrays.stream(counts).sum();
    try (DeviceBuffer all = sync.allocate(DataType.FLOAT32, total)) {
      sync.allGather(mine, all, counts);
      float[] predictions = new float[(int) total];
      all.copyTo(predictions);
      return predictions;
    }
  }

  static void averageRows(
      GradientSync sync, float[][] table, long[] ids, float[] gradients, float rate) {
    int width = table[0].length;
    SparseRows average = sync.average(new SparseRows(table.length, width, ids, gradients));
    for (int i = 0; i < average.indices().length; i++) {
      float[] row = table[(int) average.indices()[i]];
      for (int k = 0; k < width; k++) {
        row[k] -= rate * average.elements()[i * width + k];
      }
    }
  }

  static long compressed(GradientSync sync, Model model, int steps, float rate) {
    Compression hook = new PowerSgd(4).warmUp(10); // rank 4, after 10 steps of exact averages
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, model.parameters()).hook(hook).build()) {
      train(sync, model, buckets, steps, rate);
    }
    return hook.bytes();
  }

  static void hooked(GradientSync sync, Model model, int steps, float rate) {
    BucketHook exact = bucket -> bucket.sync().average(bucket.gradients());
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, model.parameters()).hook(exact).build()) {
      train(sync, model, buckets, steps, rate);
    }
  }

  private static void train(
      GradientSync sync, Model model, GradientBuckets buckets, int steps, float rate) {
    buckets.broadcast(model.weights(), 0);
    for (int step = 0; step < steps; step++) {
      pass(model, buckets, step * sync.size() + sync.rank(), 1, false);
      buckets.finish(layer -> model.update(layer, buckets.gradient(layer), rate));
    }
  }

  static float weight(GradientSync sync, int rows) {
    float scale = (float) rows * sync.size() / sync.communicator().sum(rows);
    return scale;
  }

  static void withRows(Model model, GradientBuckets buckets, int batch, int rows, float scale) {
    model.forward(batch);
    for (int layer = buckets.size() - 1; layer >= 0; layer--) {
      if (rows == 0) {
        buckets.gradient(layer).fillZero();
      } else {
        model.backward(layer, buckets.gradient(layer), scale, false);
      }
      buckets.ready(layer);
    }
  }

  /** Whether a rank has set its flag, asked between two calls of ready. */
  static boolean flagged(GradientSync sync, GradientBuckets buckets, int layer, boolean flag) {
    Communicator flags = sync.communicator().duplicate();
    try (flags) {
      if (sync.rank() == 0) {
        buckets.ready(layer); // the other ranks do so later
      }
      long[] any = {flag ? 1 : 0};
      flags.allReduce(LongBuffer.wrap(any), ReduceOp.MAX);
      if (sync.rank() > 0) {
        buckets.ready(layer);
      }
      return any[0] == 1;
    }
  }

  static void twoModels(GradientSync sync, Model model, Model critic, int steps, float rate) {
    GradientSync critics = sync.split(0, sync.rank()); // all ranks, on the same devices
    try (critics) {
      Thread other = new Thread(() -> train(critics, critic, steps, rate));
      other.start();
      train(sync, model, steps, rate);
      other.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  static void saveSlowly(GradientSync sync, Model model, Path file, int steps) throws IOException {
    GradientSync patient = GradientSync.builder().timeout(Duration.ofHours(1)).create();
    try (patient) {
      if (sync.rank() == 0) {
        model.save(file, steps);
      }
      patient.barrier();
    }
  }

  static void missing(GradientSync sync, Model model, int layer, float rate) {
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, model.parameters())
            .missing(GradientBuckets.Missing.ZERO)
            .build()) {
      buckets.broadcast(model.weights(), 0);
      model.forward(sync.rank());
      model.backward(layer, buckets.gradient(layer), 1, false);
      buckets.ready(layer); // and no other one
      buckets.finish(i -> model.update(i, buckets.gradient(i), rate));
    }
  }

  static void stepOrNone(
      GradientSync sync, Model model, GradientBuckets buckets, int batch, float rate) {
    long[] failed = new long[1];
    try {
      pass(model, buckets, batch, 1, false);
    } catch (UncheckedIOException e) { // rows that cannot be read, say
      failed[0] = 1;
    }
    buckets.finish(); // with zeros for what is missing
    sync.communicator().allReduce(LongBuffer.wrap(failed), ReduceOp.MAX);
    if (failed[0] == 0) { // on all ranks alike
      for (int layer = 0; layer < buckets.size(); layer++) {
        model.update(layer, buckets.gradient(layer), rate);
      }
    }
  }

  static void rebuilt(Model model, GradientBuckets buckets, IntConsumer update) {
    DeviceBuffer[] gradients = new DeviceBuffer[buckets.size()];
    Arrays.setAll(gradients, buckets::gradient);
    for (int step = 0; step < STEPS; step++) {
      model.forward(step);
      for (int layer = 0; layer < gradients.length; layer++) { // not in reverse
        model.backward(layer, gradients[layer], 1, false);
        buckets.ready(layer);
      }
      buckets.finish(update);
      if (step == 0 && buckets.rebuild()) {
        Arrays.setAll(gradients, buckets::gradient);
      }
    }
  }

  static Optional<DataType> compressed() {
    try (GradientSync sync = GradientSync.builder().wire(DataType.BFLOAT16).create()) {
      return sync.wire();
    }
  }

  static double clipped(Model model, GradientBuckets buckets, float rate) {
    buckets.finish();
    double norm = buckets.clipByGlobalNorm(1);
    for (int layer = 0; layer < buckets.size(); layer++) {
      model.update(layer, buckets.gradient(layer), rate);
    }
    return norm;
  }

  static void scaled(
      Model model, GradientBuckets buckets, LossScaler scaler, int batch, float rate) {
    double scale = scaler.scale(); // of this step
    pass(model, buckets, batch, (float) scale, false);
    buckets.finish();
    if (scaler.step(buckets)) { // the same on all ranks
      for (int layer = 0; layer < buckets.size(); layer++) {
        model.update(layer, buckets.gradient(layer), (float) (rate / scale));
      }
    }
  }

  static List<DeviceBuffer> sharded(
      GradientSync sync, GradientBuckets buckets, int steps, float rate) {
    List<DeviceBuffer> weights =
        IntStream.range(0, buckets.size()).mapToObj(buckets::weight).toList();
    Model model = new MyModel(sync, weights); // writes the first weights
    buckets.broadcast(weights, 0);
    List<DeviceBuffer> moments =
        buckets.shards().stream()
            .map(shard -> sync.allocate(DataType.FLOAT32, shard.weight().count()))
            .toList();
    for (int step = 0; step < steps; step++) {
      pass(model, buckets, step * sync.size() + sync.rank(), 1, false);
      buckets.finish((gradient, weight, k) -> update(gradient, weight, moments.get(k), rate));
    }
    return moments;
  }

  static void decayed(GradientBuckets buckets, float[] decay) {
    buckets.finish(
        (gradient, weight, k) -> {
          for (GradientBuckets.Piece piece : buckets.shards().get(k).pieces()) {
            DeviceBuffer part = weight.slice(piece.shardOffset(), piece.count());
            update(
                gradient.slice(piece.shardOffset(), piece.count()), part, decay[piece.parameter()]);
          }
        });
  }

  static void saveAndRestore(GradientBuckets buckets, List<DeviceBuffer> moments, int rank) {
    float[][] saved = Arrays.stream(COUNTS).mapToObj(float[]::new).toArray(float[][]::new);
    float[][] before = moments.stream().map(MyModel::read).toArray(float[][]::new);
    buckets.gatherState(moments, 0, (values, i) -> values.copyTo(saved[i])); // on rank 0
    buckets.scatterState(moments, 0, (values, i) -> values.copyFrom(saved[i]));
    assertArrayEquals(before, moments.stream().map(MyModel::read).toArray(float[][]::new));
    assertEquals(rank == 0, saved[1][0] != 0);
  }

  static void resume(GradientSync sync, Model model, Path file, int every, int steps)
      throws IOException {
    try (GradientBuckets buckets = GradientBuckets.builder(sync, model.parameters()).build()) {
      IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), RATE);
      long[] done = {sync.rank() == 0 && Files.exists(file) ? model.load(file) : 0};
      sync.communicator().broadcast(LongBuffer.wrap(done), 0);
      buckets.broadcast(model.weights(), 0);
      for (int step = (int) done[0]; step < steps; step++) {
        pass(model, buckets, step * sync.size() + sync.rank(), 1, false);
        buckets.finish(update);
        if (sync.rank() == 0 && (step + 1) % every == 0) {
          model.save(file, step + 1);
        }
      }
    }
  }

  static void fillInPlace(GradientBuckets buckets, int layer, float value) {
    FloatBuffer gradient = buckets.gradient(layer).floats();
    for (int i = 0; i < gradient.limit(); i++) {
      gradient.put(i, value);
    }
  }

  static boolean sameEverywhere(GradientSync sync, long digest) {
    long[] all = new long[sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(new long[] {digest}), LongBuffer.wrap(all));
    return Arrays.stream(all).allMatch(d -> d == all[0]);
  }

  static List<Synchronization> observed(GradientSync sync, Runnable training) {
    List<Synchronization> averages = new ArrayList<>();
    sync.observe(averages::add);
    training.run();
    sync.close(); // reports the averages that were not yet known
    double exposed = averages.stream().mapToDouble(Synchronization::exposed).sum();
    assertTrue(exposed >= 0);
    return averages;
  }

  // ... to here.

  /** Gradient descent with momentum, which is 0 here. */
  private static void update(
      DeviceBuffer gradient, DeviceBuffer weight, DeviceBuffer moment, float rate) {
    float[] g = MyModel.read(gradient);
    float[] w = MyModel.read(weight);
    float[] m = MyModel.read(moment);
    for (int i = 0; i < w.length; i++) {
      m[i] = 0 * m[i] + g[i];
      w[i] -= rate * m[i];
    }
    weight.copyFrom(w);
    moment.copyFrom(m);
  }

  /** Gradient descent with a decay of the weights. */
  private static void update(DeviceBuffer gradient, DeviceBuffer weight, float decay) {
    float[] g = MyModel.read(gradient);
    float[] w = MyModel.read(weight);
    for (int i = 0; i < w.length; i++) {
      w[i] -= RATE * (g[i] + decay * w[i]);
    }
    weight.copyFrom(w);
  }

  /** Trains with ranks that create their own syncs. */
  static float[] trained(int ranks) {
    Map<Integer, float[]> results = new ConcurrentHashMap<>();
    LocalRanks.run(
        ranks,
        threads -> {
          try (GradientSync sync = GradientSync.create()) {
            try (MyModel model = new MyModel(sync)) {
              train(sync, model, STEPS, RATE);
              results.put(sync.rank(), model.values());
            }
          }
        });
    return same(results, ranks);
  }

  /** A model whose weights, in real buffers, move towards numbers that depend on the batch. */
  static final class MyModel implements Model, AutoCloseable {
    private final List<DeviceBuffer> weights = new ArrayList<>();
    private int batch;
    private int unreadable = -1;

    MyModel(GradientSync sync) {
      this(sync, Arrays.stream(COUNTS).mapToObj(n -> sync.allocate(DataType.FLOAT32, n)).toList());
    }

    MyModel(GradientSync sync, List<DeviceBuffer> buffers) {
      int element = 0;
      for (DeviceBuffer buffer : buffers) {
        float[] start = new float[(int) buffer.count()];
        for (int i = 0; i < start.length; i++) {
          start[i] = first(element++) + 100 * sync.rank();
        }
        buffer.copyFrom(start);
        weights.add(buffer);
      }
    }

    static float first(int element) {
      return element / 7f;
    }

    static float target(int batch, int element) {
      return batch / 3f - element * 0.01f;
    }

    @Override
    public List<Parameter> parameters() {
      return IntStream.range(0, COUNTS.length)
          .mapToObj(i -> new Parameter("layer" + i, DataType.FLOAT32, COUNTS[i]))
          .toList();
    }

    @Override
    public List<DeviceBuffer> weights() {
      return weights;
    }

    @Override
    public void forward(int newBatch) {
      batch = newBatch;
    }

    private static float[] read(DeviceBuffer buffer) {
      float[] values = new float[(int) buffer.count()];
      buffer.copyTo(values);
      return values;
    }

    @Override
    public void backward(int layer, DeviceBuffer gradient, float scale, boolean add) {
      if (batch == unreadable && layer == 1) {
        throw new UncheckedIOException(new IOException("batch=" + batch));
      }
      float[] own = read(weights.get(layer));
      float[] before = read(gradient);
      int element = Arrays.stream(COUNTS, 0, layer).sum();
      for (int i = 0; i < before.length; i++) {
        float g = (own[i] - target(batch, element + i)) * scale;
        before[i] = add ? before[i] + g : g;
      }
      gradient.copyFrom(before);
    }

    @Override
    public void update(int layer, DeviceBuffer gradient, float rate) {
      float[] own = read(weights.get(layer));
      float[] average = read(gradient);
      for (int i = 0; i < own.length; i++) {
        own[i] -= rate * average[i];
      }
      weights.get(layer).copyFrom(own);
    }

    @Override
    public void save(Path file, long steps) throws IOException {
      try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(file))) {
        out.writeLong(steps);
        for (float value : values()) {
          out.writeFloat(value);
        }
      }
    }

    @Override
    public long load(Path file) throws IOException {
      try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
        long steps = in.readLong();
        for (DeviceBuffer buffer : weights) {
          float[] values = new float[(int) buffer.count()];
          for (int i = 0; i < values.length; i++) {
            values[i] = in.readFloat();
          }
          buffer.copyFrom(values);
        }
        return steps;
      }
    }

    float[] values() {
      float[] all = new float[ELEMENTS];
      int at = 0;
      for (DeviceBuffer buffer : weights) {
        float[] part = read(buffer);
        System.arraycopy(part, 0, all, at, part.length);
        at += part.length;
      }
      return all;
    }

    long digest() {
      CRC32 crc = new CRC32();
      for (float value : values()) {
        int bits = Float.floatToRawIntBits(value);
        crc.update(bits >>> 16);
        crc.update(bits);
      }
      return crc.getValue();
    }

    @Override
    public void close() {
      weights.forEach(DeviceBuffer::close);
    }
  }

  interface Training {
    void run(GradientSync sync, MyModel model) throws Exception;
  }

  private static float[] run(int ranks, Training training) {
    Map<Integer, float[]> results = new ConcurrentHashMap<>();
    LocalRanks.run(
        ranks,
        sync -> {
          try (MyModel model = new MyModel(sync)) {
            training.run(sync, model);
            results.put(sync.rank(), model.values());
          }
        });
    return same(results, ranks);
  }

  private static float[] same(Map<Integer, float[]> results, int ranks) {
    for (int rank = 0; rank < ranks; rank++) {
      assertArrayEquals(results.get(0), results.get(rank), 0f, "rank " + rank);
    }
    return results.get(0);
  }

  /**
   * Returns the expected weights.
   *
   * @param batches returns each rank's batches of a step, none for a rank without data
   */
  private static float[] expected(int steps, int ranks, IntFunction<int[][]> batches) {
    float[] weights = new float[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
      weights[i] = MyModel.first(i);
      for (int step = 0; step < steps; step++) {
        float sum = 0;
        for (int rank = 0; rank < ranks; rank++) {
          int[] own = batches.apply(step)[rank];
          float gradient = 0;
          for (int batch : own) {
            gradient += (weights[i] - MyModel.target(batch, i)) * (1f / own.length);
          }
          sum += gradient;
        }
        weights[i] -= RATE * (sum / ranks);
      }
    }
    return weights;
  }

  private static float[] expected(int steps, int ranks) {
    return expected(
        steps,
        ranks,
        step ->
            IntStream.range(0, ranks)
                .mapToObj(r -> new int[] {step * ranks + r})
                .toArray(int[][]::new));
  }

  @Test
  void everyBlockOfThePageIsHere() throws IOException {
    String here =
        (Files.readString(Path.of(THIS))
                + Files.readString(Path.of(PROGRAM))
                    .replace("package org.gradientsync.examples;", "package demo;"))
            .replaceAll("\\s", "");
    String[] parts = Files.readString(Path.of(PAGE)).split("```java\n");
    assertTrue(parts.length > 10, "blocks: " + (parts.length - 1));
    for (int i = 1; i < parts.length; i++) {
      String block = parts[i].substring(0, parts[i].indexOf("```"));
      assertTrue(here.contains(block.replaceAll("\\s", "")), block);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void ranksTrainAsThePageSays(int ranks) {
    assertArrayEquals(expected(STEPS, ranks), trained(ranks), 0f);
  }

  @Test
  void hooksTakeThePlaceOfAverages() {
    float[] weights = run(3, (sync, model) -> hooked(sync, model, STEPS, RATE));
    assertArrayEquals(expected(STEPS, 3), weights, 0f);
    run(
        2,
        (sync, model) -> {
          long warmUp = compressed(sync, model, 10, RATE);
          long step = compressed(sync, model, 11, RATE) - warmUp;
          assertTrue(step > 0 && step < ELEMENTS * 4, step + " bytes");
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void theWholeProgramLearnsTheSameWithAnyNumberOfRanks(int ranks) {
    double[] losses = new double[ranks];
    LocalRanks.run(ranks, sync -> losses[sync.rank()] = Train.train(sync, 1000));
    for (double loss : losses) {
      assertEquals(0.0030, loss, 0.00005);
    }
  }

  @Test
  void ranksStartAsThePageSays() {
    threads(1, RATE);
    process(1, RATE);
  }

  @Test
  void oneRankTrainsAsTheLoopThatThePageBeginsWith() {
    float[] alone =
        run(
            1,
            (sync, model) -> {
              DeviceBuffer[] gradients = new DeviceBuffer[COUNTS.length];
              Arrays.setAll(gradients, i -> sync.allocate(DataType.FLOAT32, COUNTS[i]));
              trainAlone(model, gradients, STEPS, RATE);
            });
    assertArrayEquals(expected(STEPS, 1), alone, 0f);
  }

  @Test
  void groupsAreDividedAsThePageSays() {
    LocalRanks.run(
        12,
        sync -> {
          Groups groups = Groups.of(sync, 2, 3);
          assertEquals(2, groups.tensor().size());
          assertEquals(3, groups.data().size());
          assertEquals(2, groups.pipeline().size());
          int rank =
              (groups.pipeline().rank() * 3 + groups.data().rank()) * 2 + groups.tensor().rank();
          assertEquals(sync.rank(), rank);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void gradientsOfSeveralBatchesAddUp(int batches) {
    float[] trained =
        run(
            2,
            (sync, model) -> {
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).build()) {
                buckets.broadcast(model.weights(), 0);
                IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), RATE);
                accumulate(sync, model, batches, buckets, update);
              }
            });
    IntFunction<int[][]> all =
        step ->
            IntStream.range(2 * step, 2 * step + 2)
                .mapToObj(i -> IntStream.range(i * batches, (i + 1) * batches).toArray())
                .toArray(int[][]::new);
    assertArrayEquals(expected(STEPS, 2, all), trained, 0f);
  }

  @Test
  void ranksMayHaveDifferentNumbersOfSteps() {
    int[][] own = {{0, 1}, {2, 3, 4, 5}, {}};
    float[] trained = run(3, (sync, model) -> uneven(sync, model, own[sync.rank()], RATE));
    IntFunction<int[][]> all =
        step ->
            Arrays.stream(own)
                .map(b -> step < b.length ? new int[] {b[step]} : new int[0])
                .toArray(int[][]::new);
    assertArrayEquals(expected(4, 3, all), trained, 0f);
  }

  @Test
  void aScaleMakesTheAverageThatOverAllRows() {
    LocalRanks.run(
        3, sync -> assertEquals((sync.rank() + 1) / 2f, weight(sync, 4 + 4 * sync.rank())));
  }

  @Test
  void missingGradientsAreZero() {
    float[] trained = run(2, (sync, model) -> missing(sync, model, sync.rank(), RATE));
    float[] expected = new float[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
      float weight = MyModel.first(i);
      int rank = i < COUNTS[0] ? 0 : 1;
      boolean missing = i >= COUNTS[0] + COUNTS[1];
      float gradient = missing ? 0 : weight - MyModel.target(rank, i);
      expected[i] = weight - RATE * (gradient / 2);
    }
    assertArrayEquals(expected, trained, 0f);
  }

  @Test
  void skippedLayersAreNotUpdated() {
    float[] trained = run(2, (sync, model) -> skipped(sync, model, sync.rank(), RATE));
    for (int i = 0; i < ELEMENTS; i++) {
      float weight = MyModel.first(i);
      int rank = i < COUNTS[0] ? 0 : 1;
      boolean skipped = i >= COUNTS[0] + COUNTS[1];
      float gradient = weight - MyModel.target(rank, i);
      assertEquals(skipped ? weight : weight - RATE * gradient, trained[i]);
    }
  }

  @Test
  void predictionsOfAllRanksAreGathered() {
    LocalRanks.run(
        3,
        sync -> {
          try (DeviceBuffer mine = sync.allocate(DataType.FLOAT32, sync.rank())) {
            float[] own = new float[sync.rank()];
            Arrays.fill(own, sync.rank());
            mine.copyFrom(own);
            assertArrayEquals(new float[] {1, 2, 2}, predictions(sync, mine));
          }
        });
  }

  @Test
  void rowsOfAnEmbeddingAreAveraged() {
    LocalRanks.run(
        2,
        sync -> {
          float[][] table = new float[5][2];
          long[] ids = sync.rank() == 0 ? new long[] {1, 3, 1} : new long[] {3};
          float[] gradients = new float[2 * ids.length];
          Arrays.fill(gradients, 2);
          averageRows(sync, table, ids, gradients, 0.5f);
          float[][] expected = {{0, 0}, {-1, -1}, {0, 0}, {-1, -1}, {0, 0}};
          assertArrayEquals(expected, table);
        });
  }

  @Test
  void aSignalStopsTheLoop(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("model");
    try (GradientSync sync = stoppable();
        MyModel model = new MyModel(sync);
        GradientBuckets buckets = GradientBuckets.builder(sync, model.parameters()).build()) {
      Process signal =
          new ProcessBuilder("kill", "-USR1", "" + ProcessHandle.current().pid()).start();
      IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), RATE);
      int steps = untilStopped(sync, buckets, model, update, file);
      assertEquals(0, signal.waitFor());
      assertEquals(steps, model.load(file));
      assertArrayEquals(expected(steps, 1), model.values(), 0f);
    }
  }

  @Test
  void rebuiltBucketsTrainTheSame() {
    List<Integer> orders = new ArrayList<>();
    float[] trained =
        run(
            1,
            (sync, model) -> {
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).firstBucketBytes(1).build()) {
                IntConsumer update = layer -> model.update(layer, buckets.gradient(layer), RATE);
                orders.add(buckets.bucketOf(0));
                rebuilt(model, buckets, update);
                orders.add(buckets.bucketOf(0));
              }
            });
    assertEquals(List.of(1, 0), orders);
    assertArrayEquals(expected(STEPS, 1), trained, 0f);
  }

  @Test
  void gradientsTravelAsTheWireSays() {
    LocalRanks.run(2, sync -> assertEquals(Optional.of(DataType.BFLOAT16), compressed()));
  }

  @Test
  void trainingGoesOnWhereACheckpointWasWritten(@TempDir Path folder) {
    Path file = folder.resolve("weights");
    run(2, (sync, model) -> resume(sync, model, file, 2, 3));
    float[] trained =
        run(
            2,
            (sync, model) -> {
              model.weights().forEach(DeviceBuffer::fillZero); // resume reads them from the file
              resume(sync, model, file, 2, STEPS);
            });
    assertArrayEquals(expected(STEPS, 2), trained, 0f);
  }

  @Test
  void clippedGradientsHaveANormOfOne() {
    float[] weights =
        run(
            2,
            (sync, model) -> {
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).build()) {
                buckets.broadcast(model.weights(), 0);
                pass(model, buckets, sync.rank(), 1, false);
                assertTrue(clipped(model, buckets, RATE) > 1);
              }
            });
    double sum = 0;
    for (int i = 0; i < ELEMENTS; i++) {
      sum += Math.pow(weights[i] - MyModel.first(i), 2);
    }
    assertEquals(RATE, Math.sqrt(sum), 1e-3);
  }

  @Test
  void scaledLossesTrainTheSame() {
    float[] weights =
        run(
            3,
            (sync, model) -> {
              LossScaler scaler = new LossScaler();
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).build()) {
                buckets.broadcast(model.weights(), 0);
                for (int step = 0; step < STEPS; step++) {
                  scaled(model, buckets, scaler, step * 3 + sync.rank(), RATE);
                }
              }
            });
    assertArrayEquals(expected(STEPS, 3), weights, 0f);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void shardsTrainTheSame(int ranks) {
    assertArrayEquals(
        expected(STEPS, ranks),
        run(
            ranks,
            (sync, model) -> {
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).sharded().build()) {
                List<DeviceBuffer> moments = sharded(sync, buckets, STEPS, RATE);
                saveAndRestore(buckets, moments, sync.rank());
                for (int i = 0; i < buckets.size(); i++) {
                  model.weights().get(i).copyFrom(MyModel.read(buckets.weight(i)));
                }
                moments.forEach(DeviceBuffer::close);
              }
            }),
        0f);
  }

  @Test
  void shardsDecayTheParametersThatShallBe() {
    float[] decay = {0.1f, 0, 0.2f};
    run(
        3,
        (sync, model) -> {
          try (GradientBuckets plain = GradientBuckets.builder(sync, model.parameters()).build();
              GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).sharded().build()) {
            List<DeviceBuffer> weights =
                IntStream.range(0, buckets.size()).mapToObj(buckets::weight).toList();
            MyModel other = new MyModel(sync, weights);
            buckets.broadcast(weights, 0);
            plain.broadcast(model.weights(), 0);
            for (int step = 0; step < STEPS; step++) {
              pass(model, plain, step * 3 + sync.rank(), 1, false);
              plain.finish(i -> update(plain.gradient(i), model.weights().get(i), decay[i]));
              pass(other, buckets, step * 3 + sync.rank(), 1, false);
              decayed(buckets, decay);
            }
            assertArrayEquals(model.values(), other.values(), 0f);
          }
        });
  }

  @Test
  void aRankWithoutRowsAddsNothing() {
    float[] weights =
        run(
            2,
            (sync, model) -> {
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters()).build()) {
                buckets.broadcast(model.weights(), 0);
                int rows = sync.rank() == 0 ? 7 : 0;
                float scale = weight(sync, rows);
                withRows(model, buckets, sync.rank(), rows, scale);
                buckets.finish(i -> model.update(i, buckets.gradient(i), RATE));
              }
            });
    assertArrayEquals(expected(1, 1), weights, 0f);
  }

  @Test
  void flagsDoNotWaitForAverages() {
    run(
        2,
        (sync, model) -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, model.parameters()).build()) {
            buckets.broadcast(model.weights(), 0);
            model.forward(sync.rank());
            for (int layer = buckets.size() - 1; layer > 0; layer--) {
              model.backward(layer, buckets.gradient(layer), 1, false);
              buckets.ready(layer);
            }
            model.backward(0, buckets.gradient(0), 1, false);
            assertTrue(flagged(sync, buckets, 0, sync.rank() == 1)); // ends the only bucket
            buckets.finish();
          }
        });
  }

  @Test
  void twoModelsTrainAtTheSameTime(@TempDir Path folder) {
    run(
        2,
        (sync, model) -> {
          try (MyModel critic = new MyModel(sync)) {
            twoModels(sync, model, critic, STEPS, RATE);
            assertArrayEquals(expected(STEPS, 2), model.values(), 0f);
            assertArrayEquals(expected(STEPS, 2), critic.values(), 0f);
            saveSlowly(sync, model, folder.resolve("model"), STEPS);
            assertTrue(Files.exists(folder.resolve("model")));
          }
        });
  }

  @Test
  void differentWeightsAreSeen() {
    run(
        2,
        (sync, model) -> {
          assertFalse(sameEverywhere(sync, model.digest()));
          train(sync, model, 1, RATE);
          assertTrue(sameEverywhere(sync, model.digest()));
        });
  }

  @Test
  void aStepThatOneRankCannotEndIsNobodys() {
    float[] weights =
        run(
            3,
            (sync, model) -> {
              model.unreadable = 2 * 3 + 1; // rank 1 reads it in step 2
              try (GradientBuckets buckets =
                  GradientBuckets.builder(sync, model.parameters())
                      .missing(GradientBuckets.Missing.ZERO)
                      .build()) {
                buckets.broadcast(model.weights(), 0);
                for (int step = 0; step < STEPS; step++) {
                  stepOrNone(sync, model, buckets, step * 3 + sync.rank(), RATE);
                }
              }
            });
    IntFunction<int[][]> batches =
        done -> {
          int step = done < 2 ? done : done + 1;
          return new int[][] {{step * 3}, {step * 3 + 1}, {step * 3 + 2}};
        };
    assertArrayEquals(expected(STEPS - 1, 3, batches), weights, 0f);
  }

  @Test
  void gradientsOnTheHostAreWrittenInPlace() {
    LocalRanks.run(
        2,
        sync -> {
          try (MyModel model = new MyModel(sync);
              GradientBuckets buckets = GradientBuckets.builder(sync, model.parameters()).build()) {
            for (int layer = 0; layer < buckets.size(); layer++) {
              fillInPlace(buckets, layer, 10 * layer + sync.rank());
              buckets.ready(layer);
            }
            buckets.finish();
            for (int layer = 0; layer < buckets.size(); layer++) {
              for (float average : MyModel.read(buckets.gradient(layer))) {
                assertEquals(10 * layer + 0.5f, average);
              }
            }
          }
        });
  }

  @Test
  void eachAverageIsTold() {
    LocalRanks.run(
        2,
        sync -> {
          try (MyModel model = new MyModel(sync)) {
            List<Synchronization> averages = observed(sync, () -> train(sync, model, STEPS, RATE));
            assertEquals(STEPS, averages.size());
            assertTrue(
                averages.stream().allMatch(s -> s.bucket() == 0 && s.bytes() >= ELEMENTS * 4));
          }
        });
  }
}
