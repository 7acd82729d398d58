package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.stream.IntStream;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests {@code nccl} on real GPUs. What is reduced is exact in any order; averages are so where the
 * number of ranks is a power of two.
 */
@Timeout(240)
class NcclOnGpu {
  private static final int[] COUNTS = {1, 3, 1000, (1 << 20) + 3};
  private static final GpuRunner RUNNER = new GpuRunner(NcclReducer.NAME);

  static IntStream sizes() {
    return IntStream.of(RUNNER.sizes());
  }

  private static void run(int ranks, RankTask task) {
    RUNNER.run(ranks, b -> b, task);
  }

  /** A number that is small enough for sums and products of eight ranks to be exact. */
  private static double number(ReduceOp op, int rank, int index) {
    return op == ReduceOp.PROD ? (index + rank) % 2 + 1 : (index + 3 * rank) % 8 + 1;
  }

  private static double expected(ReduceOp op, int ranks, int index) {
    double result = number(op, 0, index);
    for (int rank = 1; rank < ranks; rank++) {
      double other = number(op, rank, index);
      result =
          switch (op) {
            case SUM, AVERAGE -> result + other;
            case PROD -> result * other;
            case MIN -> Math.min(result, other);
            case MAX -> Math.max(result, other);
          };
    }
    return op == ReduceOp.AVERAGE ? result / ranks : result;
  }

  private static void fill(DeviceBuffer buffer, ReduceOp op, int rank) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    for (int i = 0; i < buffer.count(); i++) {
      put(memory, buffer.type(), i, number(op, rank, i));
    }
    buffer.copyFrom(memory);
  }

  private static void requireReduced(DeviceBuffer buffer, ReduceOp op, int ranks, String what) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(memory);
    boolean exact = op != ReduceOp.AVERAGE || Integer.bitCount(ranks) == 1;
    for (int i = 0; i < buffer.count(); i++) {
      double expected = expected(op, ranks, i);
      assertEquals(
          expected,
          get(memory, buffer.type(), i),
          exact ? 0 : expected / 64,
          what + ", op=" + op + ", type=" + buffer.type() + ", index=" + i);
    }
  }

  private static void put(ByteBuffer memory, DataType type, int index, double value) {
    switch (type) {
      case FLOAT16 -> memory.putShort(2 * index, Float16.fromFloat((float) value));
      case BFLOAT16 -> memory.putShort(2 * index, BFloat16.fromFloat((float) value));
      case FLOAT32 -> memory.putFloat(4 * index, (float) value);
      case FLOAT64 -> memory.putDouble(8 * index, value);
      case INT32 -> memory.putInt(4 * index, (int) value);
      case INT64 -> memory.putLong(8 * index, (long) value);
    }
  }

  private static double get(ByteBuffer memory, DataType type, int index) {
    return switch (type) {
      case FLOAT16 -> Float16.toFloat(memory.getShort(2 * index));
      case BFLOAT16 -> BFloat16.toFloat(memory.getShort(2 * index));
      case FLOAT32 -> memory.getFloat(4 * index);
      case FLOAT64 -> memory.getDouble(8 * index);
      case INT32 -> memory.getInt(4 * index);
      case INT64 -> memory.getLong(8 * index);
    };
  }

  private static boolean isDefined(ReduceOp op, DataType type) {
    return op != ReduceOp.AVERAGE || type != DataType.INT32 && type != DataType.INT64;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allReducesAndReduces(int ranks) {
    run(
        ranks,
        sync -> {
          assertEquals("nccl", sync.reducer());
          for (DataType type : DataType.values()) {
            for (int count : COUNTS) {
              try (DeviceBuffer buffer = sync.allocate(type, count)) {
                for (ReduceOp op : ReduceOp.values()) {
                  if (isDefined(op, type)) {
                    fill(buffer, op, sync.rank());
                    sync.allReduce(buffer, op);
                    requireReduced(buffer, op, ranks, "allReduce");
                    fill(buffer, op, sync.rank());
                    sync.reduce(buffer, op, ranks - 1);
                    if (sync.rank() == ranks - 1) {
                      requireReduced(buffer, op, ranks, "reduce");
                    }
                  }
                }
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reduceScattersAndGathersInPlaceAndNot(int ranks) {
    run(
        ranks,
        sync -> {
          int count = 1000;
          try (DeviceBuffer whole = sync.allocate(DataType.FLOAT32, (long) ranks * count);
              DeviceBuffer part = sync.allocate(DataType.FLOAT32, count);
              DeviceBuffer all = sync.allocate(DataType.FLOAT32, (long) ranks * count)) {
            fill(whole, ReduceOp.SUM, sync.rank());
            sync.reduceScatter(whole, part, ReduceOp.SUM);
            sync.allGather(part, all);
            requireReduced(all, ReduceOp.SUM, ranks, "reduceScatter, allGather");
            DeviceBuffer own = whole.slice((long) sync.rank() * count, count);
            sync.reduceScatter(whole, own, ReduceOp.SUM);
            sync.allGather(own, whole);
            requireReduced(whole, ReduceOp.SUM, ranks, "in place");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void movesTheBitsOfAllTypes(int ranks) {
    run(
        ranks,
        sync -> {
          for (DataType type : DataType.values()) {
            for (int count : new int[] {1, 1001}) {
              moves(sync, type, count);
            }
          }
        });
  }

  private static void moves(GradientSync sync, DataType type, int count) {
    int ranks = sync.size();
    int rank = sync.rank();
    try (DeviceBuffer whole = sync.allocate(type, (long) ranks * count);
        DeviceBuffer other = sync.allocate(type, (long) ranks * count);
        DeviceBuffer part = sync.allocate(type, count)) {
      for (int root = 0; root < ranks; root++) {
        part.copyFrom(Numbers.of(type, rank, 0, count));
        sync.broadcast(part, root);
        requireHas(Numbers.of(type, root, 0, count), part, "broadcast");
        part.copyFrom(Numbers.of(type, rank, root, count));
        sync.gather(part, whole, root);
        sync.scatter(whole, part, root);
        requireHas(Numbers.of(type, rank, root, count), part, "gather, scatter");
      }
      whole.copyFrom(Numbers.of(type, rank, 0, ranks * count));
      sync.allToAll(whole, other);
      for (int peer = 0; peer < ranks; peer++) {
        requireHas(
            Numbers.of(type, peer, (long) rank * count, count),
            other.slice((long) peer * count, count),
            "allToAll");
      }
      if (ranks > 1) {
        DeviceBuffer in = other.slice(0, count);
        sync.grouped(
            () -> {
              sync.send(whole.slice(0, count), (rank + 1) % ranks);
              sync.receive(in, (rank + ranks - 1) % ranks);
            });
        requireHas(Numbers.of(type, (rank + ranks - 1) % ranks, 0, count), in, "messages");
        if (rank == 0) {
          sync.send(whole.slice(0, count), 1);
        } else if (rank == 1) {
          sync.receive(in, 0);
          requireHas(Numbers.of(type, 0, 0, count), in, "message");
        }
      }
    }
  }

  private static void requireHas(ByteBuffer expected, DeviceBuffer buffer, String what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    assertEquals(-1, expected.mismatch(actual), what + ", type=" + buffer.type());
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void callsFollowEachOtherWithoutAWait(int ranks) {
    run(
        ranks,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT64, 100_000)) {
            fill(buffer, ReduceOp.SUM, sync.rank());
            for (int i = 0; i < 300; i++) {
              sync.allReduce(buffer, i == 0 ? ReduceOp.SUM : ReduceOp.MAX);
            }
            requireReduced(buffer, ReduceOp.SUM, ranks, "300 calls");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void differentCallsThrowAndHarmNothing(int ranks) {
    run(
        ranks,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 100);
              DeviceBuffer longer = sync.allocate(DataType.FLOAT32, 101)) {
            fill(buffer, ReduceOp.SUM, sync.rank());
            if (ranks > 1) {
              DeviceBuffer given = sync.rank() == 0 ? longer : buffer;
              assertThrows(
                  MismatchedCallException.class, () -> sync.allReduce(given, ReduceOp.SUM));
            }
            sync.allReduce(buffer, ReduceOp.SUM);
            requireReduced(buffer, ReduceOp.SUM, ranks, "after a mismatch");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void partsHaveCommunicatorsOfTheirOwn(int ranks) {
    run(
        ranks,
        sync -> {
          try (GradientSync part = sync.split(sync.rank() % 2, sync.rank());
              DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 100)) {
            assertEquals("nccl", part.reducer());
            fill(buffer, ReduceOp.SUM, part.rank());
            part.allReduce(buffer, ReduceOp.SUM);
            requireReduced(buffer, ReduceOp.SUM, part.size(), "part");
            fill(buffer, ReduceOp.SUM, sync.rank());
            sync.allReduce(buffer, ReduceOp.SUM);
            requireReduced(buffer, ReduceOp.SUM, ranks, "whole");
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allocatesNothingWhenWarm(int ranks) {
    run(
        ranks,
        sync -> {
          ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000)) {
            for (int i = 0; i < 3 * NcclProgress.CALLS; i++) {
              sync.average(buffer);
            }
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 500; i++) {
              sync.average(buffer);
            }
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            assertTrue(allocated < 6000, () -> "bytes allocated in 500 calls: " + allocated);
          }
        });
  }
}
