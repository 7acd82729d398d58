package org.gradientsync.test.contract;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.PendingAverage;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;

/**
 * One rank of a soak test: random calls on several syncs, each checked. All ranks draw the same
 * random numbers, so they make the same calls.
 */
final class Soak implements AutoCloseable {
  /** Enough that one leaked descriptor or mapping per sync is more than noise. */
  private static final int FEWEST_SYNCS = 80;

  private static final int WARM_UP_SYNCS = 40;
  private static final int OPEN_AT_ONCE = 3;
  private static final int SHORT_LIVED = 3;
  private static final int STEPS_AT_A_TIME = 16;
  private static final int LARGE = 60_001;
  private static final DataType[] TYPES = DataType.values();
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 3_001),
          new Parameter("b", DataType.BFLOAT16, 77),
          new Parameter("c", DataType.FLOAT64, 1_025),
          new Parameter("d", DataType.FLOAT32, 1),
          new Parameter("e", DataType.FLOAT16, 2_222));

  private static final int NOBODY = -1;

  private final long seed;
  private final GradientSync base;
  private final int ranks;
  private final int rank;
  private final SplittableRandom shared;
  // for the order in which gradients become ready, which may differ by rank
  private final Random own;
  private final List<GradientSync> open = new ArrayList<>();
  private int opened;
  private long steps;

  Soak(GradientSync base) {
    this.base = base;
    ranks = base.size();
    rank = base.rank();
    seed = Long.getLong("soak.seed", agree(System.nanoTime()));
    shared = new SplittableRandom(seed);
    own = new Random(seed + rank);
    if (rank == 0) {
      System.out.println(this);
    }
  }

  /** Makes every kind of call several times, to fill all caches, some of which are for one type. */
  void warmUp() {
    for (DataType type : TYPES) {
      try (DeviceBuffer block = base.allocate(type, LARGE);
          DeviceBuffer all = base.allocate(type, (long) LARGE * ranks)) {
        base.allReduce(block, ReduceOp.SUM);
        base.allGather(block, all);
      }
    }
    run(Duration.ZERO, WARM_UP_SYNCS);
  }

  /** Makes random calls for some time, and returns how many syncs it opened. */
  int run(Duration time) {
    return run(time, FEWEST_SYNCS);
  }

  private int run(Duration time, int fewestSyncs) {
    int before = opened;
    long start = System.nanoTime();
    boolean more = true;
    while (more) {
      for (int i = 0; i < STEPS_AT_A_TIME; i++) {
        step();
      }
      boolean late = System.nanoTime() - start >= time.toNanos();
      more = agree(late && opened - before >= fewestSyncs ? 1 : 0) == 0; // by rank 0's clock
    }
    return opened - before;
  }

  /** Closes all syncs but the first. */
  void settle() {
    open.forEach(GradientSync::close);
    open.clear();
    base.barrier();
  }

  @Override
  public void close() {
    open.forEach(GradientSync::close);
  }

  @Override
  public String toString() {
    return "soak: -Dsoak.seed="
        + seed
        + ", reducer="
        + base.reducer()
        + ", rank="
        + rank
        + " of "
        + ranks
        + ", steps="
        + steps;
  }

  private long agree(long value) {
    LongBuffer one = LongBuffer.wrap(new long[] {value});
    base.communicator().broadcast(one, 0);
    return one.get(0);
  }

  private void step() {
    steps++;
    int choice = shared.nextInt(100);
    try {
      if (choice < 28) {
        reduce(any(), shared);
      } else if (choice < 32) {
        unequalBlocks(any());
        unequalMessages(any());
      } else if (choice < 35) {
        background(any());
      } else if (choice < 45) {
        broadcast(any(), shared);
      } else if (choice < 60) {
        onHost(any().communicator(), ranks, shared);
      } else if (choice < 64) {
        split(any().communicator());
      } else if (choice < 70) {
        if (shared.nextInt(4) == 0) {
          open();
          try (GradientSync sync = open.remove(open.size() - 1)) {
            buckets(sync, shared.nextInt(ranks));
          }
        } else {
          buckets(any(), NOBODY);
        }
      } else if (choice < 74) {
        twoThreads();
      } else if (choice < 77) {
        sparseRows();
      } else if (choice < 94) {
        openOrClose();
      } else if (choice < 99) {
        buffers(any());
      } else {
        System.gc();
      }
    } catch (Exception | AssertionError e) {
      throw new AssertionError(this + ", choice=" + choice + ": " + e, e);
    }
  }

  private GradientSync any() {
    int index = shared.nextInt(open.size() + 1);
    return index == 0 ? base : open.get(index - 1);
  }

  private static int count(SplittableRandom random) {
    return switch (random.nextInt(12)) {
      case 0, 1 -> random.nextInt(3);
      case 2 -> random.nextInt(LARGE / 3, LARGE) | 1;
      case 3 -> random.nextInt(10_000);
      default -> random.nextInt(1, 1_500);
    };
  }

  /** The index of the first element: behind those that are kept, which would count as a leak. */
  private static int data(SplittableRandom random) {
    return Elements.PERIOD + random.nextInt(1 << 20);
  }

  private static ReduceOp op(SplittableRandom random, DataType type) {
    ReduceOp op = ReduceOp.values()[random.nextInt(ReduceOp.values().length)];
    return op == ReduceOp.AVERAGE && !type.isFloatingPoint() ? ReduceOp.SUM : op;
  }

  private void reduce(GradientSync sync, SplittableRandom random) {
    DataType type = TYPES[random.nextInt(TYPES.length)];
    ReduceOp op = op(random, type);
    int count = count(random);
    int at = random.nextInt(2) * random.nextInt(100);
    int data = data(random);
    int again = random.nextInt(1, 4);
    boolean register = random.nextInt(10) == 0;
    try (DeviceBuffer whole = sync.allocate(type, at + count + at / 2);
        DeviceBuffer part = whole.slice(at, count)) {
      if (register) {
        sync.register(part);
      }
      for (int i = 0; i < again; i++) {
        part.copyFrom(Numbers.of(type, rank, data + i, count));
        sync.allReduce(part, op);
        check(Numbers.reduced(type, op, ranks, data + i, count), part, op);
      }
    }
  }

  private void broadcast(GradientSync sync, SplittableRandom random) {
    DataType type = TYPES[random.nextInt(TYPES.length)];
    int count = count(random);
    int root = random.nextInt(ranks);
    int data = data(random);
    try (DeviceBuffer buffer = sync.allocate(type, count)) {
      buffer.copyFrom(Numbers.of(type, rank, data, count));
      sync.broadcast(buffer, root);
      check(Numbers.of(type, root, data, count), buffer, "broadcast from " + root);
    }
  }

  /** Gathers blocks of random lengths, and reduces them to where they came from. */
  private void unequalBlocks(GradientSync sync) {
    DataType type = TYPES[shared.nextInt(TYPES.length)];
    ReduceOp op = op(shared, type);
    int data = data(shared);
    long[] counts = new long[ranks];
    int total = 0;
    int first = 0;
    for (int i = 0; i < ranks; i++) {
      counts[i] = count(shared) / ranks;
      first += i < rank ? (int) counts[i] : 0;
      total += (int) counts[i];
    }
    int count = (int) counts[rank];
    try (DeviceBuffer part = sync.allocate(type, count);
        DeviceBuffer all = sync.allocate(type, total)) {
      part.copyFrom(Numbers.of(type, rank, data, count));
      sync.allGather(part, all, counts);
      ByteBuffer expected = Numbers.memory(type, total);
      for (int i = 0; i < ranks; i++) {
        expected.put(Numbers.of(type, i, data, (int) counts[i]));
      }
      check(expected.clear(), all, "allGather of counts");
      int root = shared.nextInt(ranks);
      all.copyFrom(Numbers.of(type, rank, data + 1, total));
      sync.gather(part, rank == root ? all : null, counts, root);
      check(
          rank == root ? expected : Numbers.of(type, rank, data + 1, total),
          all,
          "gather of counts");
      all.copyFrom(Numbers.of(type, rank, data, total));
      sync.reduceScatter(all, part, counts, op);
      check(Numbers.reduced(type, op, ranks, data + first, count), part, op);
    }
  }

  /** Sends a block of another random length to each rank. */
  private void unequalMessages(GradientSync sync) {
    DataType type = TYPES[shared.nextInt(TYPES.length)];
    int data = data(shared);
    long[] sent = new long[ranks];
    long[] received = new long[ranks];
    List<ByteBuffer> expected = new ArrayList<>();
    for (int from = 0; from < ranks; from++) {
      int first = 0;
      for (int to = 0; to < ranks; to++) {
        int count = count(shared) / ranks;
        if (from == rank) {
          sent[to] = count;
        }
        if (to == rank) {
          received[from] = count;
          expected.add(Numbers.of(type, from, data + first, count));
        }
        first += count;
      }
    }
    int in = (int) LongStream.of(sent).sum();
    int out = (int) LongStream.of(received).sum();
    try (DeviceBuffer source = sync.allocate(type, in);
        DeviceBuffer target = sync.allocate(type, out)) {
      source.copyFrom(Numbers.of(type, rank, data, in));
      sync.allToAll(source, sent, target, received);
      ByteBuffer all = Numbers.memory(type, out);
      expected.forEach(all::put);
      check(all.clear(), target, "allToAll of counts");
    }
  }

  /**
   * Averages some rows of a table, another number on each rank, from an array and from a buffer,
   * and the whole table.
   */
  private void sparseRows() {
    if (open.isEmpty()) {
      open();
    }
    // not the first sync: what it keeps for arrays of other lengths would count as a leak
    GradientSync sync = open.get(shared.nextInt(open.size()));
    int rows = shared.nextInt(1, 300);
    int width = shared.nextInt(1, 20);
    long[] indices = own.longs(own.nextInt(2 * rows), 0, rows).toArray(); // some several times
    float[] elements = new float[indices.length * width];
    float[] table = new float[rows * width];
    for (int i = 0; i < elements.length; i++) {
      elements[i] = own.nextFloat() - 0.5F;
      table[(int) indices[i / width] * width + i % width] += elements[i];
    }
    SparseRows average = sync.average(new SparseRows(rows, width, indices, elements));
    float[] again = new float[average.elements().length];
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, elements.length)) {
      buffer.copyFrom(elements);
      sync.average(new SparseRows(rows, width, indices, buffer)).buffer().copyTo(again);
    }
    require(Arrays.equals(average.elements(), again), "another average in a buffer");
    sync.average(table);
    float[] found = new float[table.length];
    for (int i = 0; i < average.elements().length; i++) {
      found[(int) average.indices()[i / width] * width + i % width] = average.elements()[i];
    }
    require(Arrays.equals(table, found), "wrong average of rows, rows=" + rows);
    float[] one = new float[width];
    Arrays.fill(one, 2 * rank);
    sync.average(List.of(one, found)); // found has the same elements on all ranks
    require(one[width - 1] == ranks - 1, "wrong average of several arrays: " + one[width - 1]);
  }

  /** Starts averages, of which some are waited for. */
  private void background(GradientSync sync) {
    int data = data(shared);
    int[] counts = {count(shared), count(shared), count(shared)};
    List<DeviceBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < counts.length; i++) {
      buffers.add(sync.allocate(DataType.FLOAT32, counts[i]));
      buffers.get(i).copyFrom(Numbers.of(DataType.FLOAT32, rank, data + i, counts[i]));
      PendingAverage average = sync.averageAsync(buffers.get(i));
      if (own.nextBoolean()) {
        average.await();
      }
    }
    sync.barrier();
    for (int i = 0; i < counts.length; i++) {
      check(
          Numbers.reduced(DataType.FLOAT32, ReduceOp.AVERAGE, ranks, data + i, counts[i]),
          buffers.get(i),
          "averageAsync");
      buffers.get(i).close();
    }
  }

  /** Makes one of the communicator's calls. */
  private static void onHost(Communicator group, int size, SplittableRandom random) {
    DataType type = TYPES[random.nextInt(TYPES.length)];
    ReduceOp op = op(random, type);
    int count = random.nextInt(1, 3_000);
    int root = random.nextInt(size);
    int data = data(random);
    int me = group.rank();
    int all = count * size;
    ByteBuffer mine = Numbers.of(type, me, data, count);
    ByteBuffer room = Numbers.memory(type, all);
    Buffer send = Numbers.typed(type, mine);
    switch (random.nextInt(9)) {
      case 0 -> {
        group.allReduce(send, type, op);
        check(Numbers.reduced(type, op, size, data, count), mine, type, op);
      }
      case 1 -> {
        group.broadcast(send, root);
        check(Numbers.of(type, root, data, count), mine, type, "communicator.broadcast");
      }
      case 2 -> {
        group.allGather(send, Numbers.typed(type, room));
        check(everybodys(type, size, data, count), room, type, "allGather");
      }
      case 3 -> {
        ByteBuffer whole = Numbers.of(type, me, data, all);
        group.reduceScatter(Numbers.typed(type, whole), send, type, op);
        check(Numbers.reduced(type, op, size, data + me * count, count), mine, type, op);
      }
      case 4 -> {
        group.gather(send, me == root ? Numbers.typed(type, room) : null, root);
        if (me == root) {
          check(everybodys(type, size, data, count), room, type, "gather");
        }
      }
      case 5 -> {
        ByteBuffer whole = everybodys(type, size, data, count);
        group.scatter(me == root ? Numbers.typed(type, whole) : null, send, root);
        check(Numbers.of(type, me, data, count), mine, type, "scatter");
      }
      case 6 -> {
        List<byte[]> bytes = group.allGather(bytes(me, count));
        for (int peer = 0; peer < size; peer++) {
          require(Arrays.equals(bytes(peer, count), bytes.get(peer)), "wrong bytes of " + peer);
        }
      }
      case 7 -> {
        byte[] bytes = group.broadcast(me == root ? bytes(root, count) : null, root);
        require(Arrays.equals(bytes(root, count), bytes), "wrong bytes from " + root);
      }
      default -> {
        if (size > 1) {
          ByteBuffer got = Numbers.memory(type, count);
          int to = (me + 1) % size;
          int from = (me + size - 1) % size;
          group.sendReceive(send, to, Numbers.typed(type, got), from, random.nextInt(100));
          check(Numbers.of(type, from, data, count), got, type, "sendReceive");
        }
      }
    }
  }

  /** Some bytes of a rank, of which each has another number; the first one has none. */
  private static byte[] bytes(int rank, int count) {
    byte[] bytes = new byte[rank * count];
    Arrays.fill(bytes, (byte) (rank + count));
    return bytes;
  }

  private static ByteBuffer everybodys(DataType type, int size, int data, int count) {
    ByteBuffer all = Numbers.memory(type, count * size);
    for (int peer = 0; peer < size; peer++) {
      all.put(Numbers.of(type, peer, data, count));
    }
    return all.clear();
  }

  /** Splits some of the ranks into groups, in random order. */
  private void split(Communicator communicator) {
    int[] colors = new int[ranks];
    int[] keys = new int[ranks];
    for (int i = 0; i < ranks; i++) {
      colors[i] = shared.nextInt(4) - 1;
      keys[i] = shared.nextInt(5);
    }
    SplittableRandom[] byColor = {shared.split(), shared.split(), shared.split()};
    int size = 0;
    int place = 0;
    for (int i = 0; i < ranks; i++) {
      if (colors[i] == colors[rank]) {
        size++;
        place += keys[i] < keys[rank] || keys[i] == keys[rank] && i < rank ? 1 : 0;
      }
    }
    try (Communicator part = communicator.split(colors[rank], keys[rank])) {
      if (colors[rank] < 0) {
        require(part == null, "a rank without a color is in a group");
        return;
      }
      require(part.size() == size && part.rank() == place, "wrong place in a group: " + place);
      for (int i = 0; i < 3; i++) {
        onHost(part, size, byColor[colors[rank]]);
      }
    }
  }

  /**
   * Makes two steps.
   *
   * @param stopping the rank that asks all to stop, or {@link #NOBODY}
   */
  private void buckets(GradientSync sync, int stopping) {
    int data = data(shared);
    boolean overlap = shared.nextBoolean();
    int left = shared.nextInt(3 * MODEL.size()); // out by all ranks, if there is one
    GradientBuckets.Builder builder =
        GradientBuckets.builder(sync, MODEL)
            .firstBucketBytes(4_000)
            .bucketBytes(12_000)
            .overlap(overlap)
            .missing(GradientBuckets.Missing.SKIP);
    if (shared.nextInt(3) == 0) {
      builder.hook(bucket -> bucket.sync().average(bucket.gradients()));
    }
    try (GradientBuckets buckets = builder.build()) {
      List<Integer> order = new ArrayList<>();
      for (int i = 0; i < MODEL.size(); i++) {
        order.add(i);
      }
      for (int step = 0; step < 2; step++) {
        int now = data + 1000 * step;
        if (rank == stopping) {
          sync.requestStop();
        }
        Collections.shuffle(order, own);
        for (int i : order) {
          Parameter p = MODEL.get(i);
          if (i != left) {
            buckets.gradient(i).copyFrom(Numbers.of(p.type(), rank, now + i, (int) p.count()));
            buckets.ready(i);
          }
        }
        buckets.finish();
        require(buckets.stopRequested() == (stopping != NOBODY), "stop of rank " + stopping);
        for (int i = 0; i < MODEL.size(); i++) {
          Parameter p = MODEL.get(i);
          require(buckets.isSkipped(i) == (i == left), "wrongly skipped or not: " + p);
          if (i == left) {
            continue;
          }
          check(
              Numbers.reduced(p.type(), ReduceOp.AVERAGE, ranks, now + i, (int) p.count()),
              buckets.gradient(i),
              p);
        }
      }
    }
  }

  /** Calls two syncs at the same time, each on its own thread. */
  private void twoThreads() throws InterruptedException {
    while (open.size() < 2) {
      open();
    }
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<>());
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      GradientSync sync = open.get(i);
      SplittableRandom random = shared.split();
      threads[i] =
          new Thread(
              () -> {
                for (int call = 0; call < 4; call++) {
                  reduce(sync, random);
                  onHost(sync.communicator(), ranks, random);
                }
              },
              "soak-" + i);
      threads[i].setUncaughtExceptionHandler((thread, e) -> failures.add(e));
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (!failures.isEmpty()) {
      throw new AssertionError("on one of two threads: " + failures.get(0), failures.get(0));
    }
  }

  private void open() {
    open.add(
        GradientSync.builder()
            .device(base.device().kind())
            .reducer(base.reducer())
            .timeout(Duration.ofSeconds(60))
            .create());
    opened++;
  }

  private void openOrClose() {
    if (open.size() == OPEN_AT_ONCE || !open.isEmpty() && shared.nextBoolean()) {
      open.remove(shared.nextInt(open.size())).close();
    } else {
      open();
      reduce(open.get(open.size() - 1), shared);
    }
    for (int i = 0; i < SHORT_LIVED; i++) {
      open();
      GradientSync sync = open.remove(open.size() - 1);
      try (DeviceBuffer buffer = sync.allocate(DataType.INT32, 9)) {
        buffer.copyFrom(Numbers.of(DataType.INT32, rank, i, 9));
        sync.allReduce(buffer, ReduceOp.SUM);
        check(Numbers.reduced(DataType.INT32, ReduceOp.SUM, ranks, i, 9), buffer, "a new sync's");
      }
      sync.close();
    }
  }

  /** Opens and closes buffers in any order; only one of them is reduced. */
  private void buffers(GradientSync sync) {
    List<DeviceBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      buffers.add(sync.allocate(DataType.INT64, shared.nextInt(5_000)));
    }
    sync.allReduce(buffers.get(3), ReduceOp.MAX); // all elements are zero
    check(
        Numbers.memory(DataType.INT64, (int) buffers.get(3).count()),
        buffers.get(3),
        "fresh memory");
    while (!buffers.isEmpty()) {
      buffers.remove(shared.nextInt(buffers.size())).close();
    }
  }

  private static void require(boolean condition, String otherwise) {
    if (!condition) {
      throw new AssertionError(otherwise);
    }
  }

  private static void check(ByteBuffer expected, DeviceBuffer buffer, Object what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    check(expected, actual, buffer.type(), what);
  }

  private static void check(ByteBuffer expected, ByteBuffer actual, DataType type, Object what) {
    int difference = expected.mismatch(actual);
    require(
        difference < 0,
        "wrong bits: "
            + what
            + ", type="
            + type
            + ", bytes="
            + expected.remaining()
            + ", index="
            + difference / type.sizeInBytes());
  }
}
