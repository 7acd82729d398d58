package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.SoakChecks.TYPES;
import static org.gradientsync.test.contract.SoakChecks.check;
import static org.gradientsync.test.contract.SoakChecks.count;
import static org.gradientsync.test.contract.SoakChecks.data;
import static org.gradientsync.test.contract.SoakChecks.op;
import static org.gradientsync.test.contract.SoakChecks.require;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.PendingAverage;
import org.gradientsync.ReduceOp;
import org.gradientsync.SparseRows;

/** Calls of {@link Soak} that a sync makes on its device. */
final class SoakCollectives {
  private final int rank;
  private final int ranks;
  private final SplittableRandom shared;
  private final Random own;

  SoakCollectives(GradientSync base, SplittableRandom shared, Random own) {
    rank = base.rank();
    ranks = base.size();
    this.shared = shared;
    this.own = own;
  }

  void reduce(GradientSync sync, SplittableRandom random) {
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

  void broadcast(GradientSync sync, SplittableRandom random) {
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
  void unequalBlocks(GradientSync sync) {
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
  void unequalMessages(GradientSync sync) {
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
  void sparseRows(GradientSync sync) {
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
  void background(GradientSync sync) {
    DataType type;
    do {
      type = TYPES[shared.nextInt(TYPES.length)];
    } while (!type.isFloatingPoint());
    int data = data(shared);
    int[] counts = {count(shared), count(shared), count(shared)};
    List<DeviceBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < counts.length; i++) {
      buffers.add(sync.allocate(type, counts[i]));
      buffers.get(i).copyFrom(Numbers.of(type, rank, data + i, counts[i]));
      PendingAverage average = sync.averageAsync(buffers.get(i));
      if (own.nextBoolean()) {
        average.await();
      }
    }
    sync.barrier();
    for (int i = 0; i < counts.length; i++) {
      check(
          Numbers.reduced(type, ReduceOp.AVERAGE, ranks, data + i, counts[i]),
          buffers.get(i),
          "averageAsync");
      buffers.get(i).close();
    }
  }

  /** Opens and closes buffers in any order; only one of them is reduced. */
  void buffers(GradientSync sync) {
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
}
