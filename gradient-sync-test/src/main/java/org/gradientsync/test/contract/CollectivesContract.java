package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What the collectives other than the all-reduce, and messages, must do with device memory. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class CollectivesContract {
  private static final int[] COUNTS = {0, 1, 3, 64, 1000, 4_099, 70_001};
  private static final int PAD = 3; // elements around a slice, which must not change

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> severalRanks() {
    return sizes().filter(ranks -> ranks > 1);
  }

  Stream<Arguments> sizesAndTypes() {
    return sizes().flatMap(n -> Arrays.stream(DataType.values()).map(t -> Arguments.of(n, t)));
  }

  /** For calls that consist of others, which are tested with all types. */
  Stream<Arguments> sizesAndSomeTypes() {
    DataType[] some = {DataType.BFLOAT16, DataType.FLOAT32, DataType.INT64};
    return sizes().flatMap(n -> Arrays.stream(some).map(t -> Arguments.of(n, t)));
  }

  /** The elements of a rank from an index on. */
  private static ByteBuffer values(DataType type, int rank, long first, int count) {
    return Numbers.of(type, rank, first, count);
  }

  /** A buffer with elements before and behind it that must stay as they are. */
  private static final class Padded implements AutoCloseable {
    private final DeviceBuffer whole;
    private final DeviceBuffer part;
    private final ByteBuffer around;

    Padded(GradientSync sync, DataType type, int count) {
      whole = sync.allocate(type, count + 2L * PAD);
      part = whole.slice(PAD, count);
      around = values(type, 99, 7, count + 2 * PAD);
      whole.copyFrom(around);
    }

    /** Expects these elements, and nothing else to have changed. */
    void assertHas(ByteBuffer expected, String what) {
      int size = whole.type().sizeInBytes();
      ByteBuffer all = Numbers.memory(whole.type(), (int) whole.count());
      whole.copyTo(all);
      around.put(PAD * size, expected, 0, expected.remaining());
      int difference = around.mismatch(all);
      assertEquals(
          -1,
          difference,
          () -> what + ", element=" + (difference / size - PAD) + " of " + part.count());
    }

    @Override
    public void close() {
      whole.close();
    }
  }

  private static ByteBuffer concatenated(DataType type, int ranks, long first, int count) {
    ByteBuffer all = Numbers.memory(type, ranks * count);
    int bytes = count * type.sizeInBytes();
    for (int rank = 0; rank < ranks; rank++) {
      all.put(rank * bytes, values(type, rank, first, count), 0, bytes);
    }
    return all;
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void allGatherConcatenates(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int count : COUNTS) {
                try (Padded in = new Padded(sync, type, count);
                    Padded out = new Padded(sync, type, ranks * count)) {
                  for (int round = 0; round < 2; round++) {
                    ByteBuffer own = values(type, sync.rank(), round, count);
                    in.part.copyFrom(own);
                    sync.allGather(in.part, out.part);
                    String what = "allGather, count=" + count + ", round=" + round;
                    in.assertHas(own, what);
                    out.assertHas(concatenated(type, ranks, round, count), what);
                    DeviceBuffer slice = out.part.slice((long) sync.rank() * count, count);
                    slice.copyFrom(values(type, sync.rank(), round + 5, count));
                    sync.allGather(slice, out.part);
                    out.assertHas(concatenated(type, ranks, round + 5, count), what + ", in place");
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void reduceScatterGivesThePromisedBits(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (ReduceOp op : ReduceOp.values()) {
                for (int count : COUNTS) {
                  if (!op.isDefinedFor(type)) {
                    continue;
                  }
                  int first = sync.rank() * count;
                  try (Padded in = new Padded(sync, type, ranks * count);
                      Padded out = new Padded(sync, type, count)) {
                    ByteBuffer own = values(type, sync.rank(), 0, ranks * count);
                    ByteBuffer expected = Numbers.reduced(type, op, ranks, first, count);
                    String what = "reduceScatter, op=" + op + ", count=" + count;
                    for (int round = 0; round < 2; round++) {
                      in.part.copyFrom(own);
                      sync.reduceScatter(in.part, out.part, op);
                      in.assertHas(own, what);
                      out.assertHas(expected, what);
                      DeviceBuffer slice = in.part.slice(first, count);
                      sync.reduceScatter(in.part, slice, op);
                      own.put(first * type.sizeInBytes(), expected, 0, expected.remaining());
                      in.assertHas(own, what + ", in place");
                      own = values(type, sync.rank(), 0, ranks * count);
                    }
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void reduceChangesTheRootOnly(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (ReduceOp op : new ReduceOp[] {ReduceOp.SUM, ReduceOp.MAX}) {
                for (int count : COUNTS) {
                  try (Padded buffer = new Padded(sync, type, count)) {
                    for (int root : new int[] {ranks - 1, 0}) {
                      ByteBuffer own = values(type, sync.rank(), root, count);
                      buffer.part.copyFrom(own);
                      sync.reduce(buffer.part, op, root);
                      buffer.assertHas(
                          sync.rank() == root ? Numbers.reduced(type, op, ranks, root, count) : own,
                          "reduce, op=" + op + ", count=" + count + ", root=" + root);
                    }
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void gatherAndScatterGoToAndFromTheRoot(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int count : COUNTS) {
                for (int root : new int[] {ranks - 1, 0}) {
                  boolean isRoot = sync.rank() == root;
                  String what = "count=" + count + ", root=" + root;
                  try (Padded part = new Padded(sync, type, count);
                      Padded all = new Padded(sync, type, ranks * count)) {
                    ByteBuffer own = values(type, sync.rank(), root, count);
                    part.part.copyFrom(own);
                    sync.gather(part.part, isRoot ? all.part : null, root);
                    part.assertHas(own, "gather, " + what);
                    if (isRoot) {
                      all.assertHas(concatenated(type, ranks, root, count), "gather, " + what);
                      DeviceBuffer slice = all.part.slice((long) root * count, count);
                      slice.copyFrom(values(type, root, root + 1, count));
                      sync.gather(slice, all.part, root);
                      all.assertHas(
                          concatenated(type, ranks, root + 1, count), "gather in place, " + what);
                    } else {
                      part.part.copyFrom(values(type, sync.rank(), root + 1, count));
                      sync.gather(part.part, null, root);
                    }
                    // Each rank gets its elements back.
                    sync.scatter(isRoot ? all.part : null, part.part, root);
                    part.assertHas(values(type, sync.rank(), root + 1, count), "scatter, " + what);
                    if (isRoot) {
                      sync.scatter(all.part, all.part.slice((long) root * count, count), root);
                      all.assertHas(
                          concatenated(type, ranks, root + 1, count), "scatter in place, " + what);
                    } else {
                      part.part.fillZero();
                      sync.scatter(null, part.part, root);
                      part.assertHas(
                          values(type, sync.rank(), root + 1, count), "scatter, " + what);
                    }
                  }
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndTypes")
  void allToAllTransposes(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int count : COUNTS) {
                try (Padded in = new Padded(sync, type, ranks * count);
                    Padded out = new Padded(sync, type, ranks * count)) {
                  ByteBuffer own = values(type, sync.rank(), 0, ranks * count);
                  ByteBuffer expected = Numbers.memory(type, ranks * count);
                  int bytes = count * type.sizeInBytes();
                  for (int rank = 0; rank < ranks; rank++) {
                    expected.put(
                        rank * bytes,
                        values(type, rank, (long) sync.rank() * count, count),
                        0,
                        bytes);
                  }
                  for (int round = 0; round < 2; round++) {
                    in.part.copyFrom(own);
                    out.part.fillZero();
                    sync.allToAll(in.part, out.part);
                    in.assertHas(own, "allToAll, count=" + count);
                    out.assertHas(expected, "allToAll, count=" + count);
                  }
                }
              }
            });
  }

  /** Counts of their own for each rank: some zero, some odd, also none at all. */
  private static long[][] unequalCounts(int ranks) {
    long[][] all = new long[4][ranks];
    for (int rank = 0; rank < ranks; rank++) {
      all[1][rank] = rank % 2 == 0 ? 0 : 5 * rank + 2;
      all[2][rank] = 103 + 977L * rank;
      all[3][rank] = rank == ranks - 1 ? 20_001 : rank;
    }
    return all; // the first one is zero for each rank
  }

  private static int first(long[] counts, int rank) {
    return (int) Arrays.stream(counts, 0, rank).sum();
  }

  /** Each rank's own elements, in rank order. */
  private static ByteBuffer concatenated(DataType type, long first, long[] counts) {
    ByteBuffer all = Numbers.memory(type, first(counts, counts.length));
    int at = 0;
    for (int rank = 0; rank < counts.length; rank++) {
      int bytes = (int) counts[rank] * type.sizeInBytes();
      all.put(at, values(type, rank, first, (int) counts[rank]), 0, bytes);
      at += bytes;
    }
    return all;
  }

  @ParameterizedTest
  @MethodSource("sizesAndSomeTypes")
  void unequalBlocksAreGathered(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (long[] counts : unequalCounts(ranks)) {
                int own = (int) counts[sync.rank()];
                int total = first(counts, ranks);
                assertArrayEquals(counts, sync.counts(own));
                try (Padded in = new Padded(sync, type, own);
                    Padded out = new Padded(sync, type, total)) {
                  String what = "counts=" + Arrays.toString(counts);
                  for (int round = 0; round < 2; round++) {
                    ByteBuffer elements = values(type, sync.rank(), round, own);
                    in.part.copyFrom(elements);
                    sync.allGather(in.part, out.part, counts);
                    in.assertHas(elements, "allGather, " + what);
                    out.assertHas(concatenated(type, round, counts), "allGather, " + what);
                    int root = round == 0 ? ranks - 1 : 0;
                    in.part.copyFrom(values(type, sync.rank(), round + 9, own));
                    sync.gather(in.part, sync.rank() == root ? out.part : null, counts, root);
                    out.assertHas(
                        concatenated(type, sync.rank() == root ? round + 9 : round, counts),
                        "gather, root=" + root + ", " + what);
                  }
                  DeviceBuffer slice = out.part.slice(first(counts, sync.rank()), own);
                  slice.copyFrom(values(type, sync.rank(), 5, own));
                  sync.allGather(slice, out.part, counts);
                  out.assertHas(concatenated(type, 5, counts), "in place, " + what);
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizesAndSomeTypes")
  void unequalBlocksAreReduced(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              for (ReduceOp op : new ReduceOp[] {ReduceOp.SUM, ReduceOp.AVERAGE, ReduceOp.MIN}) {
                for (long[] counts : unequalCounts(ranks)) {
                  if (!op.isDefinedFor(type)) {
                    continue;
                  }
                  int first = first(counts, sync.rank());
                  int own = (int) counts[sync.rank()];
                  int total = first(counts, ranks);
                  try (Padded in = new Padded(sync, type, total);
                      Padded out = new Padded(sync, type, own)) {
                    String what = "op=" + op + ", counts=" + Arrays.toString(counts);
                    ByteBuffer elements = values(type, sync.rank(), 0, total);
                    ByteBuffer expected = Numbers.reduced(type, op, ranks, first, own);
                    in.part.copyFrom(elements);
                    for (int round = 0; round < 2; round++) {
                      out.part.fillZero();
                      sync.reduceScatter(in.part, out.part, counts, op);
                      in.assertHas(elements, what);
                      out.assertHas(expected, what);
                    }
                    sync.reduceScatter(in.part, in.part.slice(first, own), counts, op);
                    elements.put(first * type.sizeInBytes(), expected, 0, expected.remaining());
                    in.assertHas(elements, what + ", in place");
                  }
                }
              }
            });
  }

  /** Rank r sends 3r + 5p + 1 elements to rank p, or none if both are odd. */
  private static long sent(int from, int to) {
    return from % 2 == 1 && to % 2 == 1 ? 0 : 3L * from + 5L * to + 1;
  }

  @ParameterizedTest
  @MethodSource("sizesAndSomeTypes")
  void unequalBlocksAreTransposed(int ranks, DataType type) {
    runner()
        .run(
            ranks,
            sync -> {
              long[] inCounts = new long[ranks];
              long[] outCounts = new long[ranks];
              for (int peer = 0; peer < ranks; peer++) {
                inCounts[peer] = sent(sync.rank(), peer);
                outCounts[peer] = sent(peer, sync.rank());
              }
              int received = first(outCounts, ranks);
              ByteBuffer expected = Numbers.memory(type, received);
              for (int peer = 0; peer < ranks; peer++) {
                long first = 0;
                for (int to = 0; to < sync.rank(); to++) {
                  first += sent(peer, to);
                }
                ByteBuffer block = values(type, peer, first, (int) outCounts[peer]);
                expected.put(
                    first(outCounts, peer) * type.sizeInBytes(), block, 0, block.remaining());
              }
              try (Padded in = new Padded(sync, type, first(inCounts, ranks));
                  Padded out = new Padded(sync, type, received)) {
                ByteBuffer elements = values(type, sync.rank(), 0, first(inCounts, ranks));
                in.part.copyFrom(elements);
                for (int round = 0; round < 3; round++) {
                  out.part.fillZero();
                  if (round < 2) {
                    sync.allToAll(in.part, inCounts, out.part, outCounts);
                  } else {
                    sync.grouped(() -> sync.allToAll(in.part, inCounts, out.part, outCounts));
                  }
                  in.assertHas(elements, "round=" + round);
                  out.assertHas(expected, "round=" + round);
                }
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void differentCountsThrowOnEveryRankAndChangeNothing(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              long[] counts = new long[ranks];
              Arrays.fill(counts, 4);
              counts[0] = odd ? 3 : 4;
              counts[1] = odd ? 5 : 4;
              DataType type = DataType.FLOAT32;
              try (DeviceBuffer all = sync.allocate(type, 4L * ranks);
                  DeviceBuffer part = sync.allocate(type, 5)) {
                ByteBuffer elements = values(type, sync.rank(), 0, 4 * ranks);
                all.copyFrom(elements);
                DeviceBuffer own = part.slice(0, counts[sync.rank()]);
                String total = "(FLOAT32[" + 4 * ranks + "] \"counts ";
                String first = "rank 0: allGather" + total + "4, 4";
                String last = "rank " + (ranks - 1) + ": allGather" + total + "3, 5";
                mismatch(() -> sync.allGather(own, all, counts), first, last);
                mismatch(
                    () -> sync.reduceScatter(all, own, counts, ReduceOp.SUM),
                    "rank 0: reduceScatter" + total + "4, 4",
                    "rank " + (ranks - 1) + ": reduceScatter" + total + "3, 5");
                mismatch(
                    () -> sync.gather(own, sync.rank() == 0 ? all : null, counts, 0),
                    "rank 0: gather" + total + "4, 4",
                    "rank " + (ranks - 1) + ": gather" + total + "3, 5");
                ByteBuffer after = Numbers.memory(type, 4 * ranks);
                all.copyTo(after);
                assertEquals(-1, elements.mismatch(after));
                long[] in = new long[ranks];
                long[] out = new long[ranks];
                if (sync.rank() == 0) {
                  in[1] = 3;
                } else if (sync.rank() == 1) {
                  out[0] = 2;
                }
                Runnable exchange =
                    () ->
                        sync.allToAll(
                            all.slice(0, first(in, ranks)),
                            in,
                            part.slice(0, first(out, ranks)),
                            out);
                if (sync.rank() < 2) {
                  mismatch(
                      exchange,
                      "rank 0: send(FLOAT32[3] \"part of allToAll\", to=1)",
                      "rank 1: receive(FLOAT32[2] \"part of allToAll\", from=0)");
                } else {
                  exchange.run();
                }
                String others = "rank " + (ranks - 1) + ": barrier()";
                mismatch(odd ? sync::barrier : exchange, "rank 0: allToAll(", others);
                Arrays.fill(counts, 0);
                counts[0] = 4; // as many in all as the last rank has
                DeviceBuffer mine = part.slice(0, odd ? 4 : counts[sync.rank()]);
                mismatch(
                    () -> {
                      if (odd) {
                        sync.allGather(mine, all);
                      } else {
                        sync.allGather(mine, all.slice(0, 4), counts);
                      }
                    },
                    "rank 0: allGather(FLOAT32[4] \"counts 4, 0",
                    "rank " + (ranks - 1) + ": allGather(FLOAT32[4]), call=");
                Arrays.fill(counts, 4);
                sync.allGather(part.slice(0, 4), all, counts); // the sync still works
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void refusesBadCounts(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              long[] fits = new long[ranks];
              Arrays.fill(fits, 2);
              long[] more = new long[ranks + 1];
              long[] negative = fits.clone();
              negative[ranks - 1] = -2;
              long[] larger = fits.clone();
              larger[sync.rank()]++;
              try (DeviceBuffer all = sync.allocate(type, 2L * ranks);
                  DeviceBuffer part = sync.allocate(type, 2);
                  DeviceBuffer ints = sync.allocate(DataType.INT32, 2L * ranks)) {
                refused(() -> sync.allGather(part, all, more), "one for each rank");
                refused(() -> sync.allGather(part, all, negative), "none negative");
                refused(() -> sync.allGather(part, all, larger), "counts do not match the buffer");
                refused(() -> sync.allGather(part, ints, fits), "types or counts do not match");
                refused(() -> sync.gather(part, all, larger, 0), "counts do not match the buffer");
                refused(() -> sync.gather(part, all, fits, ranks), "root=" + ranks);
                refused(
                    () -> sync.reduceScatter(all, part, larger, ReduceOp.SUM),
                    "counts do not match the buffer");
                refused(
                    () -> sync.reduceScatter(ints, ints.slice(0, 2), fits, ReduceOp.AVERAGE),
                    "INT32");
                refused(() -> sync.allToAll(all, fits, part, larger), "counts do not match");
                long[] huge = new long[ranks];
                huge[0] = Long.MAX_VALUE;
                if (ranks > 1) {
                  huge[1] = Long.MAX_VALUE;
                  refused(() -> sync.allGather(part, all, huge), "fit a long");
                  refused(() -> sync.allToAll(all, fits, all, fits), "in and out overlap");
                  DeviceBuffer other = all.slice(2L * ((sync.rank() + 1) % ranks), 2);
                  refused(() -> sync.allGather(other, all, fits), "in and out overlap");
                }
                assertThrows(NullPointerException.class, () -> sync.allGather(part, all, null));
                sync.allGather(part, all, fits);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void messagesGoRoundTheRanks(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int next = (sync.rank() + 1) % ranks;
              int previous = (sync.rank() + ranks - 1) % ranks;
              for (DataType type : DataType.values()) {
                for (int count : COUNTS) {
                  try (Padded buffer = new Padded(sync, type, count)) {
                    for (int round = 0; round < 2; round++) {
                      ByteBuffer first = values(type, 0, round, count);
                      buffer.part.copyFrom(values(type, sync.rank(), round, count));
                      if (sync.rank() > 0) {
                        sync.receive(buffer.part, previous);
                        buffer.assertHas(first, "receive, count=" + count);
                      }
                      sync.send(buffer.part, next);
                      if (sync.rank() == 0) {
                        buffer.part.fillZero();
                        sync.receive(buffer.part, previous);
                      }
                      buffer.assertHas(first, "send, type=" + type + ", count=" + count);
                    }
                  }
                }
              }
            });
  }

  /** A reduce-scatter and an all-gather give what an average gives. */
  @ParameterizedTest
  @MethodSource("sizes")
  void twoHalvesAreAnAverage(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int count = ranks * 1_237;
              DataType type = DataType.FLOAT32;
              try (DeviceBuffer one = sync.allocate(type, count).named("w");
                  DeviceBuffer other = sync.allocate(type, count).named("w")) {
                DeviceBuffer part = one.slice(sync.rank() * 1_237L, 1_237);
                for (int round = 0; round < 5; round++) {
                  one.copyFrom(values(type, sync.rank(), round, count));
                  other.copyFrom(values(type, sync.rank(), round, count));
                  sync.reduceScatter(one, part, ReduceOp.AVERAGE);
                  sync.allGather(part, one);
                  sync.average(other);
                  ByteBuffer expected = Numbers.memory(type, count);
                  ByteBuffer actual = Numbers.memory(type, count);
                  other.copyTo(expected);
                  one.copyTo(actual);
                  assertEquals(-1, expected.mismatch(actual));
                }
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void mismatchesAreNamedAndChangeNothing(int ranks) {
    int last = ranks - 1;
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == last;
              DataType type = DataType.FLOAT32;
              try (DeviceBuffer small = sync.allocate(type, ranks * 6L).named("s");
                  DeviceBuffer large = sync.allocate(type, ranks * 6L * ranks)) {
                ByteBuffer own = values(type, sync.rank(), 0, ranks * 6);
                small.copyFrom(own);
                mismatch(
                    () ->
                        sync.allGather(
                            odd ? small.slice(0, 5) : small.slice(0, 6),
                            odd ? large.slice(0, 5L * ranks) : large.slice(0, 6L * ranks)),
                    "rank 0: allGather(FLOAT32[6]",
                    "rank " + last + ": allGather(FLOAT32[5]");
                mismatch(
                    () ->
                        sync.reduceScatter(
                            small, large.slice(0, 6), odd ? ReduceOp.SUM : ReduceOp.AVERAGE),
                    "rank 0: reduceScatter(FLOAT32[6] \"s\", AVERAGE)",
                    "rank " + last + ": reduceScatter(FLOAT32[6] \"s\", SUM)");
                mismatch(
                    () -> sync.reduce(small, ReduceOp.SUM, odd ? 0 : last),
                    "rank 0: reduce(FLOAT32[" + ranks * 6 + "] \"s\", SUM, root=" + last + ")",
                    ", SUM, root=0)");
                mismatch(
                    () -> {
                      if (odd) {
                        sync.allToAll(small, large.slice(0, 6L * ranks));
                      } else {
                        sync.average(small);
                      }
                    },
                    "rank 0: allReduce(FLOAT32[" + ranks * 6 + "] \"s\", AVERAGE)",
                    "rank " + last + ": allToAll(FLOAT32[6] \"s\")");
                ByteBuffer after = Numbers.memory(type, ranks * 6);
                small.copyTo(after);
                assertEquals(-1, own.mismatch(after));
                sync.average(small); // the sync still works
              }
            });
  }

  /** Everything else is the same, so only the name of one of the two buffers differs. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void otherNamesOfEitherBufferThrowMismatch(int ranks) {
    int last = ranks - 1;
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              String name = sync.rank() == last ? "bias" : "weight";
              boolean root = sync.rank() == 0;
              try (DeviceBuffer part = sync.allocate(type, 5).named(name);
                  DeviceBuffer plain = sync.allocate(type, 5);
                  DeviceBuffer whole = sync.allocate(type, ranks * 5L).named("whole");
                  DeviceBuffer named = sync.allocate(type, ranks * 5L).named(name)) {
                mismatch(
                    () -> sync.allGather(part, whole),
                    "rank 0: allGather(FLOAT32[5] \"weight\" to \"whole\")",
                    "rank " + last + ": allGather(FLOAT32[5] \"bias\" to \"whole\")");
                mismatch(
                    () -> sync.allGather(plain, named),
                    "rank 0: allGather(FLOAT32[5] to \"weight\")",
                    "rank " + last + ": allGather(FLOAT32[5] to \"bias\")");
                mismatch(
                    () -> sync.reduceScatter(whole, part, ReduceOp.SUM),
                    "rank 0: reduceScatter(FLOAT32[5] \"whole\" to \"weight\", SUM)",
                    "rank " + last + ": reduceScatter(FLOAT32[5] \"whole\" to \"bias\", SUM)");
                mismatch(
                    () -> sync.allToAll(whole, named),
                    "rank 0: allToAll(FLOAT32[5] \"whole\" to \"weight\")",
                    "rank " + last + ": allToAll(FLOAT32[5] \"whole\" to \"bias\")");
                mismatch(
                    () -> sync.gather(part, root ? whole : null, 0),
                    "rank 0: gather(FLOAT32[5] \"weight\" to \"whole\", root=0)",
                    "rank " + last + ": gather(FLOAT32[5] \"bias\", root=0)");
                mismatch(
                    () -> sync.scatter(root ? whole : null, part, 0),
                    "rank 0: scatter(FLOAT32[5] \"whole\" to \"weight\", root=0)",
                    "rank " + last + ": scatter(FLOAT32[5] to \"bias\", root=0)");
                mismatch(
                    () -> sync.grouped(() -> sync.allGather(part, whole)),
                    "allGather(FLOAT32[5] \"weight\" to \"whole\")");
                long[] counts = LongStream.generate(() -> 5).limit(ranks).toArray();
                mismatch(
                    () -> sync.allGather(plain, named, counts),
                    "rank 0: allGather(FLOAT32[" + ranks * 5 + "] \"counts 5, 5",
                    " to \"weight\")",
                    " to \"bias\")");
                mismatch(
                    () -> sync.reduceScatter(named, plain, counts, ReduceOp.SUM),
                    "rank 0: reduce(FLOAT32[5] \"weight\", SUM, root=0)",
                    "rank " + last + ": reduce(FLOAT32[5] \"bias\", SUM, root=0)");
                mismatch(
                    () -> sync.allToAll(whole, counts, named, counts),
                    " to \"weight\")",
                    "rank " + last + ": allToAll(FLOAT32[0] \"counts of each pair\" to \"bias\")");
              }
            });
  }

  /** A block is a part of a buffer, at another place on each rank. */
  @ParameterizedTest
  @MethodSource("sizes")
  void blocksOfNamedBuffersMatch(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              boolean root = sync.rank() == 0;
              try (DeviceBuffer whole = sync.allocate(type, ranks * 5L).named("whole");
                  DeviceBuffer other = sync.allocate(type, ranks * 5L).named("other");
                  DeviceBuffer own = sync.allocate(type, 5).named("part");
                  DeviceBuffer unused = sync.allocate(type, 5).named("part")) {
                DeviceBuffer block = whole.slice(sync.rank() * 5L, 5);
                DeviceBuffer inPlaceOnRoot = root ? whole.slice(0, 5) : own; // new on all ranks
                sync.allGather(block, whole);
                sync.allGather(block, other);
                sync.allGather(inPlaceOnRoot, whole);
                sync.reduceScatter(whole, block, ReduceOp.SUM);
                sync.reduceScatter(other, block, ReduceOp.SUM);
                sync.reduceScatter(whole, inPlaceOnRoot, ReduceOp.SUM);
                sync.gather(inPlaceOnRoot, root ? whole : null, 0);
                sync.scatter(root ? whole : null, inPlaceOnRoot, 0);
                sync.reduce(whole, ReduceOp.SUM, 0);
                long[] counts = LongStream.generate(() -> 5).limit(ranks).toArray();
                sync.allGather(own, whole, counts);
                sync.allGather(block, whole, counts);
                sync.gather(own, root ? whole : null, counts, 0);
                sync.reduceScatter(whole, own, counts, ReduceOp.SUM);
                sync.reduceScatter(whole, block, counts, ReduceOp.SUM);
                sync.reduceScatter(whole, root ? inPlaceOnRoot : unused, counts, ReduceOp.SUM);
                sync.allToAll(whole, counts, other, counts);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void messagesOfOtherCountsThrowOnBothRanks(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(DataType.INT32, 5).named("halo")) {
                buffer.copyFrom(new int[] {sync.rank(), 1, 2, 3, 4});
                if (sync.rank() == 0) {
                  mismatch(
                      () -> sync.send(buffer, 1),
                      "rank 0: send(INT32[5] \"halo\", to=1)",
                      "rank 1: receive(INT32[4] \"halo\", from=0)");
                } else if (sync.rank() == 1) {
                  mismatch(
                      () -> sync.receive(buffer.slice(0, 4), 0),
                      "rank 0: send(INT32[5] \"halo\", to=1)",
                      "rank 1: receive(INT32[4] \"halo\", from=0)");
                }
                int[] after = new int[5];
                buffer.copyTo(after);
                assertEquals(sync.rank(), after[0]);
                sync.barrier();
                if (sync.rank() == 0) {
                  sync.send(buffer, 1);
                } else if (sync.rank() == 1) {
                  sync.receive(buffer, 0);
                  buffer.copyTo(after);
                  assertEquals(0, after[0]);
                }
              }
            });
  }

  private static void mismatch(Runnable call, String... parts) {
    String text = assertThrows(MismatchedCallException.class, call::run).getMessage();
    for (String part : parts) {
      assertTrue(text.contains(part), text);
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void valuesThatAreNotFiniteAreRefusedBeforeAnythingIsReduced(int ranks) {
    runner()
        .run(
            ranks,
            builder -> builder.requireFinite(true),
            sync -> {
              try (DeviceBuffer in = sync.allocate(DataType.FLOAT32, ranks * 3L).named("w");
                  DeviceBuffer out = sync.allocate(DataType.FLOAT32, 3)) {
                float[] values = new float[ranks * 3];
                values[2] = sync.rank() == 1 ? Float.NaN : 1;
                in.copyFrom(values);
                String text =
                    assertThrows(
                            NotFiniteException.class,
                            () -> {
                              sync.reduceScatter(in, out, ReduceOp.SUM);
                              out.copyTo(new float[3]);
                            })
                        .getMessage();
                assertTrue(text.contains("rank 1: reduceScatter(FLOAT32[3] \"w\", SUM)"), text);
                assertTrue(text.contains("index=2"), text);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void refusesBadInput(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              DeviceBuffer one = sync.allocate(type, 6);
              try (DeviceBuffer all = sync.allocate(type, 6L * ranks);
                  DeviceBuffer ints = sync.allocate(DataType.INT32, 6L * ranks)) {
                refused(() -> sync.allGather(one, ints), "types or counts do not match");
                refused(() -> sync.allGather(one, all.slice(0, 6L * ranks - 1)), "rank=");
                refused(
                    () -> sync.reduceScatter(ints, ints.slice(0, 6), ReduceOp.AVERAGE), "INT32");
                refused(() -> sync.reduce(one, ReduceOp.SUM, ranks), "root=" + ranks);
                refused(() -> sync.gather(one, all, -1), "root=-1");
                refused(() -> sync.send(one, ranks), "peer=" + ranks);
                refused(() -> sync.receive(one, sync.rank()), "to itself");
                if (ranks > 1) {
                  refused(() -> sync.allToAll(all, all), "in and out overlap");
                  refused(() -> sync.allToAll(one.slice(0, 1), one.slice(1, 1)), "multiple");
                  DeviceBuffer other = all.slice(6L * ((sync.rank() + 1) % ranks), 6);
                  refused(() -> sync.allGather(other, all), "in and out overlap");
                  refused(() -> sync.reduceScatter(all, other, ReduceOp.SUM), "overlap");
                  refused(
                      () -> sync.reduceScatter(all.slice(1, 6L * ranks - 1), one, ReduceOp.SUM),
                      "multiple of the number of ranks");
                }
                assertThrows(NullPointerException.class, () -> sync.allGather(null, all));
                assertThrows(NullPointerException.class, () -> sync.allGather(one, null));
                assertThrows(NullPointerException.class, () -> sync.reduceScatter(all, one, null));
                sync.barrier();
                one.close();
                assertThrows(IllegalStateException.class, () -> sync.allGather(one, all));
                assertThrows(
                    IllegalStateException.class, () -> sync.reduceScatter(all, one, ReduceOp.SUM));
                sync.close();
                assertThrows(IllegalStateException.class, () -> sync.allToAll(all, all));
                if (ranks > 1) {
                  assertThrows(
                      IllegalStateException.class, () -> sync.send(all, (sync.rank() + 1) % ranks));
                }
              }
            });
  }

  private static void refused(Runnable call, String part) {
    String text = assertThrows(IllegalArgumentException.class, call::run).getMessage();
    assertTrue(text.contains(part), text);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void theMeanIsTakenInRankOrder(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              double[] scales = {1, 0.1, 1e300, -3e-320, 1e17};
              for (double scale : scales) {
                double sum = 0;
                for (int rank = 0; rank < ranks; rank++) {
                  sum += scale / (rank + 3);
                }
                assertEquals(sum / ranks, sync.mean(scale / (sync.rank() + 3)));
              }
              assertEquals(
                  Double.NaN, sync.mean(sync.rank() == ranks - 1 ? Double.NaN : sync.rank()));
              assertEquals(Double.POSITIVE_INFINITY, sync.mean(Double.POSITIVE_INFINITY));
              sync.close();
              assertThrows(IllegalStateException.class, () -> sync.mean(1));
            });
  }

  /**
   * {@return whether a broadcast allocates nothing when warm; false if the ranks compare more than
   * their calls before each}
   */
  protected boolean keepsBroadcasts() {
    return true;
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void allocatesNothingWhenWarm(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              com.sun.management.ThreadMXBean threads =
                  (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
              try (DeviceBuffer all = sync.allocate(DataType.FLOAT32, ranks * 1_000L);
                  DeviceBuffer other = sync.allocate(DataType.FLOAT32, ranks * 1_000L);
                  DeviceBuffer part = sync.allocate(DataType.FLOAT32, 1_000)) {
                Runnable calls =
                    () -> {
                      sync.reduceScatter(all, part, ReduceOp.SUM);
                      sync.allGather(part, all);
                      sync.allToAll(all, other);
                      sync.reduce(part, ReduceOp.SUM, 0);
                      if (keepsBroadcasts()) {
                        sync.broadcast(other, ranks - 1);
                      }
                      if (sync.rank() == 0) {
                        sync.send(part, 1);
                      } else if (sync.rank() == 1) {
                        sync.receive(part, 0);
                      }
                    };
                for (int i = 0; i < 50; i++) {
                  calls.run();
                }
                long allocated = Long.MAX_VALUE;
                for (int round = 0;
                    round < 10 && sync.communicator().any(allocated >= 6000);
                    round++) {
                  long before = threads.getCurrentThreadAllocatedBytes();
                  for (int i = 0; i < 500; i++) {
                    calls.run();
                  }
                  allocated =
                      Math.min(allocated, threads.getCurrentThreadAllocatedBytes() - before);
                }
                // Reading the counter allocates a little itself, and so does a long wait; one
                // object a call would be 8000 bytes.
                assertTrue(allocated < 6000, "bytes allocated in 500 rounds: " + allocated);
              }
            });
  }
}
