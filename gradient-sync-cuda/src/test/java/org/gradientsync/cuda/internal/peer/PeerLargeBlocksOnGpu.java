package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.test.contract.Numbers;
import org.gradientsync.test.contract.RankRunner;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests what the contract of collectives leaves open: elements that travel in another type, graphs,
 * and long random sequences of calls.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
class PeerLargeBlocksOnGpu {
  private static final int ROUNDS = Integer.getInteger("blocks.rounds", 4_000);
  private static final int LARGEST = Integer.getInteger("blocks.largest", 700_000);

  /** For compute-sanitizer, under which copies wait for kernels of all threads. */
  private static final boolean MEETS = Boolean.getBoolean("blocks.meets");

  private static final DataType FLOAT = DataType.FLOAT32;

  private final RankRunner runner = new GpuRunner(PeerReducer.NAME, algorithm());

  /** The algorithm with which no blocks go in lines, whatever their size. */
  String algorithm() {
    return "stream";
  }

  Stream<Integer> sizes() {
    return Arrays.stream(runner.sizes()).filter(n -> n > 1).boxed();
  }

  Stream<Arguments> sizesAndWires() {
    return sizes()
        .flatMap(
            n -> Stream.of(DataType.BFLOAT16, DataType.FLOAT16).map(wire -> Arguments.of(n, wire)));
  }

  private static ByteBuffer read(DeviceBuffer buffer) {
    ByteBuffer memory = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(memory);
    return memory;
  }

  /**
   * The bits of compressed sums do not depend on the call, and those of an all-reduce are tested.
   */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizesAndWires")
  void compressedSumsHaveTheBitsOfAnAllReduce(int ranks, DataType wire) {
    runner.run(
        ranks,
        builder -> builder.wire(wire),
        sync -> {
          for (ReduceOp op : new ReduceOp[] {ReduceOp.SUM, ReduceOp.AVERAGE, ReduceOp.MAX}) {
            for (int count : new int[] {1, 3, 8, 1000, 4_099, 70_001}) {
              for (int offset = 0; offset < 5; offset += 4 - offset / 3) {
                compareWithAllReduce(sync, ranks, op, count, offset);
              }
            }
          }
        });
  }

  private static void compareWithAllReduce(
      GradientSync sync, int ranks, ReduceOp op, int count, int offset) {
    try (DeviceBuffer whole = sync.allocate(FLOAT, (long) ranks * count + offset);
        DeviceBuffer other = sync.allocate(FLOAT, (long) ranks * count);
        DeviceBuffer part = sync.allocate(FLOAT, count + 1L)) {
      DeviceBuffer in = whole.slice(offset, (long) ranks * count);
      ByteBuffer values = Numbers.of(FLOAT, sync.rank(), 0, ranks * count);
      String what = "op=" + op + ", count=" + count + ", offset=" + offset;
      in.copyFrom(values);
      other.copyFrom(values);
      sync.allReduce(other, op);
      ByteBuffer expected = read(other);
      DeviceBuffer out = part.slice(offset % 2, count);
      sync.reduceScatter(in, out, op);
      assertEquals(
          -1, expected.slice(sync.rank() * count * 4, count * 4).mismatch(read(out)), what);
      sync.reduce(in, op, ranks - 1);
      ByteBuffer after = read(in);
      assertEquals(-1, (sync.rank() == ranks - 1 ? expected : values).mismatch(after), what);
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void capturedCallsAreReplayed(int ranks) {
    runner.run(
        ranks,
        sync -> {
          int count = 20_011;
          try (CudaBuffer all = (CudaBuffer) sync.allocate(DataType.INT64, (long) ranks * count)) {
            DeviceBuffer part = all.slice((long) sync.rank() * count, count);
            sync.reduceScatter(all, part, ReduceOp.SUM);
            sync.allGather(part, all);
            all.stream().beginCapture();
            sync.reduceScatter(all, part, ReduceOp.SUM);
            sync.allGather(part, all);
            try (CudaGraph graph = all.stream().endCapture()) {
              sync.barrier(); // on a shared GPU, graph creation may wait for another rank's kernel
              all.copyFrom(Numbers.of(DataType.INT64, sync.rank(), 0, ranks * count));
              for (int i = 0; i < 3; i++) {
                graph.launch(all.stream());
              }
              sync.allReduce(all, ReduceOp.SUM); // a call outside the graph still matches
              ByteBuffer expected =
                  Numbers.reduced(DataType.INT64, ReduceOp.SUM, ranks, 0, ranks * count);
              for (int i = 0; i < ranks * count; i++) {
                expected.putLong(8 * i, expected.getLong(8 * i) * ranks * ranks * ranks);
              }
              assertEquals(-1, expected.mismatch(read(all)));
            }
          }
        });
  }

  /** JCuda shows an address's number only to subclasses. */
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void memoryOfAPoolIsCopiedFirst(int ranks) {
    runner.run(
        ranks,
        sync -> {
          int count = 70_001;
          CudaDevice device = (CudaDevice) sync.device();
          try (CudaBuffer out = (CudaBuffer) sync.allocate(FLOAT, (long) ranks * count);
              CudaStream stream = device.createStream()) {
            device.makeCurrent();
            Address pooled = new Address();
            Assumptions.assumeTrue(
                JCudaDriver.cuMemAllocAsync(
                        pooled, 4L * count, DriverAccess.stream(stream).handle())
                    == CUresult.CUDA_SUCCESS,
                "this driver has no memory pools");
            try (CudaBuffer in = device.wrap(FLOAT, pooled.value(), count, stream)) {
              for (int round = 0; round < 3; round++) {
                in.copyFrom(Numbers.of(FLOAT, sync.rank(), round, count));
                sync.allGather(in, out);
                ByteBuffer all = read(out);
                for (int rank = 0; rank < ranks; rank++) {
                  ByteBuffer expected = Numbers.of(FLOAT, rank, round, count);
                  assertEquals(-1, expected.mismatch(all.slice(rank * count * 4, count * 4)));
                }
              }
            }
            JCudaDriver.cuMemFreeAsync(pooled, DriverAccess.stream(stream).handle());
          }
        });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("sizes")
  void randomCallsInOneOrder(int ranks) {
    runner.run(ranks, sync -> random(sync, ranks));
  }

  /**
   * Every call adds to what earlier ones have left, so the host need not wait, and an error stays
   * until the end of a few calls.
   */
  private static void random(GradientSync sync, int ranks) {
    SplittableRandom shared = new SplittableRandom(11); // the same numbers on all ranks
    SplittableRandom own = new SplittableRandom(100 + sync.rank());
    DataType type = DataType.INT32;
    int me = sync.rank();
    int slots = 12;
    DeviceBuffer whole = sync.allocate(type, 3L * ranks * LARGEST);
    DeviceBuffer[] in = new DeviceBuffer[slots];
    DeviceBuffer[] out = new DeviceBuffer[slots];
    DeviceBuffer[] part = new DeviceBuffer[slots];
    for (int i = 0; i < slots; i++) {
      int count = i == 0 ? LARGEST - 8 : 1 + shared.nextInt(i < 4 ? LARGEST / 4 : 2_000);
      in[i] = whole.slice(shared.nextInt(8), (long) ranks * count);
      out[i] = whole.slice((long) ranks * LARGEST + shared.nextInt(8), (long) ranks * count);
      part[i] = whole.slice(2L * ranks * LARGEST + shared.nextInt(8), count);
    }
    int[] values = new int[0];
    int[] sums = new int[0];
    for (int round = 0; round < ROUNDS; round++) {
      int choice = shared.nextInt(1000);
      int slot = choice == 0 ? 0 : choice < 30 ? 1 + choice % 3 : 4 + choice % (slots - 4);
      int count = (int) part[slot].count();
      int seed = round;
      values = fill(values, ranks * count, i -> value(seed, me, i));
      in[slot].copyFrom(IntBuffer.wrap(values, 0, ranks * count));
      meet(sync);
      if (own.nextInt(60) == 0) {
        LockSupport.parkNanos(own.nextInt(300_000));
      }
      sync.reduceScatter(in[slot], part[slot], ReduceOp.SUM); // block of this rank
      sync.allGather(part[slot], out[slot]); // all sums
      sync.allToAll(out[slot], in[slot]); // each rank's block `me` of the sums, all the same
      int from = (me + ranks - 1) % ranks;
      int to = (me + 1) % ranks;
      if (me == 0) {
        sync.send(in[slot].slice(0, count), to);
        sync.receive(part[slot], from);
      } else {
        sync.receive(part[slot], from);
        sync.send(in[slot].slice(0, count), to);
      }
      // Now `part` is the block of the sums that belongs to the rank before.
      sums = fill(sums, count, i -> sum(seed, ranks, from * count + i));
      int[] got = new int[count];
      meet(sync);
      part[slot].copyTo(got);
      assertEquals(
          -1, Arrays.mismatch(got, 0, count, sums, 0, count), "round=" + round + ", slot=" + slot);
    }
    whole.close();
  }

  private static void meet(GradientSync sync) {
    if (MEETS) {
      sync.barrier();
    }
  }

  private interface Element {
    int at(int index);
  }

  private static int[] fill(int[] array, int count, Element element) {
    int[] filled = array.length < count ? new int[count] : array;
    for (int i = 0; i < count; i++) {
      filled[i] = element.at(i);
    }
    return filled;
  }

  private static int sum(int round, int ranks, int index) {
    int sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
      sum += value(round, rank, index);
    }
    return sum;
  }

  private static int value(int round, int rank, int index) {
    int x = round * 0x9E3779B9 + rank * 0x85EBCA6B + index * 0xC2B2AE35;
    return x ^ x >>> 15;
  }
}
