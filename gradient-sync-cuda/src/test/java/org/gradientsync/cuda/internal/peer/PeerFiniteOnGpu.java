package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.NotFiniteException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests the kernels of {@code peer} that look for NaN and infinities. At least two ranks run as
 * threads, and share a GPU if there is only one.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class PeerFiniteOnGpu {
  private static final int COUNT = 300_007;
  // whole vectors of each type, which may take another kernel
  private static final int WHOLE = 300_016;
  private static final String MODEL = "model";

  private static final List<DataType> TYPES =
      Stream.of(DataType.values()).filter(DataType::isFloatingPoint).toList();

  Stream<Arguments> waysAndTypes() {
    return Stream.of("one_shot", "two_shot", "stream")
        .flatMap(algorithm -> TYPES.stream().map(type -> Arguments.of(algorithm, type)));
  }

  Stream<Arguments> waysAndWires() {
    return Stream.of("one_shot", "two_shot", "stream")
        .flatMap(
            algorithm ->
                Stream.of(DataType.BFLOAT16, DataType.FLOAT16)
                    .map(t -> Arguments.of(algorithm, t)));
  }

  private static void run(UnaryOperator<GradientSync.Builder> options, RankTask task) {
    int ranks = Math.max(2, Math.min(4, CudaLibrary.api().deviceCount()));
    LocalRanks.run(
        ranks,
        b ->
            options
                .apply(b.device("cuda").reducer("peer").requireFinite(true))
                .set("dev.peer.sharing", "on")
                .timeout(Duration.ofSeconds(20)),
        task);
  }

  @ParameterizedTest
  @MethodSource("waysAndTypes")
  void whatIsNotFiniteIsNamed(String algorithm, DataType type) {
    run(
        b -> b.set("dev.peer.algorithm", algorithm),
        sync -> {
          for (ReduceOp op : List.of(ReduceOp.AVERAGE, ReduceOp.MAX)) {
            find(sync, type, 0, COUNT, op);
            find(sync, type, 0, WHOLE, op);
            find(sync, type, 1 + sync.rank() % 3, COUNT, op); // not aligned to vectors
          }
        });
  }

  @ParameterizedTest
  @MethodSource("waysAndWires")
  void whatTravelsNarrowedIsNamedAsItLies(String algorithm, DataType wire) {
    run(
        b -> b.set("dev.peer.algorithm", algorithm).wire(wire),
        sync -> {
          find(sync, DataType.FLOAT32, 0, COUNT, ReduceOp.AVERAGE);
          find(sync, DataType.FLOAT32, 0, WHOLE, ReduceOp.AVERAGE);
          find(sync, DataType.FLOAT32, 1 + sync.rank() % 3, COUNT, ReduceOp.AVERAGE);
        });
  }

  /** Reduces with a non-finite element on one rank, and with none. */
  private static void find(GradientSync sync, DataType type, int first, int count, ReduceOp op) {
    try (DeviceBuffer whole = sync.allocate(type, count + first)) {
      DeviceBuffer gradient = whole.slice(first, count).named("w");
      sync.allReduce(gradient, op); // all elements are zero
      requireBits(sync, gradient, op == ReduceOp.AVERAGE ? ReduceOp.SUM : op);
      assertDoesNotThrow(() -> reduce(sync, gradient, op, -1));
      int[] indices = {0, 1, count / 2, count / 2 + 1, count - 2, count - 1};
      for (int i = 0; i < indices.length; i++) {
        int rank = i % sync.size();
        int index = indices[i];
        int bad = sync.rank() == rank ? index : -1;
        NotFiniteException e =
            assertThrows(NotFiniteException.class, () -> reduce(sync, gradient, op, bad));
        String expected =
            "\n  rank " + rank + ": " + type + "[" + count + "] \"w\", index=" + index;
        assertTrue(e.getMessage().endsWith(":" + expected), e::getMessage);
      }
      assertDoesNotThrow(() -> reduce(sync, gradient, op, -1));
    }
  }

  /** These kernels are compiled separately, so check their sums, too. */
  private static void requireBits(GradientSync sync, DeviceBuffer gradient, ReduceOp op) {
    DataType type = gradient.type();
    int count = (int) gradient.count();
    ByteBuffer values = smallNumbers(type, count, sync.rank());
    gradient.copyFrom(values);
    sync.allReduce(gradient, op);
    ByteBuffer actual = Numbers.memory(type, count);
    gradient.copyTo(actual);
    ByteBuffer expected = smallNumbers(type, count, 0);
    for (int i = 0; i < count; i++) {
      double result = 0;
      for (int rank = 0; rank < sync.size(); rank++) {
        double value = number(rank, i);
        result = op == ReduceOp.MAX ? Math.max(result, value) : result + value;
      }
      put(expected, type, i, result);
    }
    assertEquals(-1, expected.mismatch(actual), () -> type + ", " + op);
  }

  /** Returns small numbers, whose sums are exact in all types. */
  private static int number(int rank, int index) {
    return (index * 7 + rank * 13) % 61;
  }

  private static ByteBuffer smallNumbers(DataType type, int count, int rank) {
    ByteBuffer values = Numbers.memory(type, count);
    for (int i = 0; i < count; i++) {
      put(values, type, i, number(rank, i));
    }
    return values;
  }

  private static void put(ByteBuffer memory, DataType type, int index, double value) {
    switch (type) {
      case FLOAT16 -> memory.putShort(2 * index, Float16.fromFloat((float) value));
      case BFLOAT16 -> memory.putShort(2 * index, BFloat16.fromFloat((float) value));
      case FLOAT32 -> memory.putFloat(4 * index, (float) value);
      case FLOAT64 -> memory.putDouble(8 * index, value);
      default -> throw new IllegalArgumentException("type=" + type);
    }
  }

  private static void reduce(GradientSync sync, DeviceBuffer gradient, ReduceOp op, int bad) {
    gradient.copyFrom(values(gradient.type(), (int) gradient.count(), bad));
    sync.allReduce(gradient, op);
    gradient.copyTo(Numbers.memory(gradient.type(), (int) gradient.count()));
  }

  /** Returns the largest numbers of a type. They are finite, even if their sums are not. */
  private static ByteBuffer values(DataType type, int count, int bad) {
    ByteBuffer values = Numbers.memory(type, count);
    for (int i = 0; i < count; i++) {
      boolean infinite = i == bad;
      switch (type) {
        case FLOAT16 -> values.putShort(2 * i, (short) (infinite ? 0xfc00 : 0x7bff));
        case BFLOAT16 -> values.putShort(2 * i, (short) (infinite ? 0x7fc1 : 0xff7f));
        case FLOAT32 -> values.putFloat(4 * i, infinite ? Float.NaN : -Float.MAX_VALUE);
        case FLOAT64 ->
            values.putDouble(8 * i, infinite ? Double.NEGATIVE_INFINITY : Double.MAX_VALUE);
        default -> throw new IllegalArgumentException("type=" + type);
      }
    }
    return values;
  }

  private static String place(int index) {
    return "index=" + index + " (" + MODEL + "[" + index + "])";
  }

  @Test
  void inBucketsDuringBackward() {
    Consumer<GradientBuckets> step =
        buckets -> {
          buckets.ready(0);
          buckets.finish();
          buckets.gradient(0).copyTo(new float[COUNT]);
        };
    run(
        b -> b.set("dev.peer.algorithm", "stream"),
        sync -> {
          List<Parameter> model = List.of(new Parameter(MODEL, DataType.FLOAT32, COUNT));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            step.accept(buckets);
            for (int rank = 0; rank < sync.size(); rank++) {
              int bad = sync.rank() == rank ? COUNT - 2 - rank : -1;
              buckets.gradient(0).copyFrom(values(DataType.FLOAT32, COUNT, bad));
              NotFiniteException e =
                  assertThrows(NotFiniteException.class, () -> step.accept(buckets));
              assertTrue(e.getMessage().contains("\n  rank " + rank + ": "), e::getMessage);
              assertTrue(e.getMessage().endsWith(place(COUNT - 2 - rank)), e::getMessage);
              sync.barrier();
            }
          }
        });
  }

  @Test
  void inReplaysOfGraphs() {
    run(
        b -> b,
        sync -> {
          try (CudaBuffer gradient = (CudaBuffer) sync.allocate(DataType.FLOAT32, 1_000)) {
            sync.register(gradient);
            sync.average(gradient);
            CudaStream stream = gradient.stream();
            stream.beginCapture();
            sync.average(gradient);
            try (CudaGraph graph = stream.endCapture()) {
              sync.barrier(); // on a shared GPU, graph creation may wait for another rank's kernel
              for (int replay = 0; replay < 3; replay++) {
                gradient.copyFrom(values(DataType.FLOAT32, 1_000, -1));
                graph.launch(stream);
                assertDoesNotThrow(() -> gradient.copyTo(new float[1_000]));
                int index = 10 * replay;
                int bad = sync.rank() == 1 ? index : -1;
                gradient.copyFrom(values(DataType.FLOAT32, 1_000, bad));
                graph.launch(stream);
                NotFiniteException e =
                    assertThrows(NotFiniteException.class, () -> gradient.copyTo(new float[1_000]));
                assertTrue(e.getMessage().endsWith(", index=" + index), e::getMessage);
              }
            }
          }
        });
  }

  /** A step of a program that never waits through the library. */
  private interface Step {
    void run(CudaBuffer gradient);
  }

  /** Waits for the GPU as a framework does that has a stream of its own. */
  private static void awaitPastTheLibrary(CudaStream stream) {
    Gpu gpu = DriverAccess.gpu(stream.device());
    gpu.makeCurrent();
    gpu.api().awaitStream(DriverAccess.stream(stream).handle());
  }

  /**
   * Runs steps on a wrapped stream, with a NaN on rank 1, until they throw.
   *
   * @return the number of steps before
   */
  private static int stepsBeforeNotFinite(GradientSync sync, Step step) {
    CudaDevice device = (CudaDevice) sync.device();
    int bad = sync.rank() == 1 ? 7 : -1;
    try (CudaStream own = device.createStream()) {
      long handle = DriverAccess.gpu(device).api().handleOf(DriverAccess.stream(own).handle());
      try (CudaStream wrapped = device.wrapStream(handle);
          CudaBuffer gradient = device.allocate(DataType.FLOAT32, 1_000, wrapped)) {
        gradient.copyFrom(values(DataType.FLOAT32, 1_000, bad));
        sync.register(gradient);
        int[] steps = {0};
        NotFiniteException e =
            assertThrows(
                NotFiniteException.class,
                () -> {
                  for (; steps[0] < 10_000; steps[0]++) {
                    step.run(gradient);
                  }
                });
        assertTrue(e.getMessage().contains("\n  rank 1: FLOAT32[1000], index="), e::getMessage);
        // The calls of all ranks still match.
        gradient.copyFrom(values(DataType.FLOAT32, 1_000, -1));
        sync.allReduce(gradient, ReduceOp.MAX);
        float[] largest = new float[1_000];
        gradient.copyTo(largest);
        assertEquals(-Float.MAX_VALUE, largest[7]);
        return steps[0];
      }
    }
  }

  @Test
  void aLoopThatNeverWaitsThroughTheLibraryEndsInTheNextCall() {
    run(
        b -> b,
        sync -> {
          int steps =
              stepsBeforeNotFinite(
                  sync,
                  gradient -> {
                    sync.average(gradient);
                    awaitPastTheLibrary(gradient.stream());
                  });
          assertEquals(1, steps);
        });
  }

  @Test
  void aLoopThatNeverWaitsEndsInTheSameCallOnAllRanks() {
    run(
        b -> b,
        sync -> {
          int steps = stepsBeforeNotFinite(sync, sync::average);
          int[] counts = {steps, -steps};
          sync.communicator().allReduce(IntBuffer.wrap(counts), ReduceOp.MIN);
          assertEquals(counts[0], -counts[1]);
        });
  }

  @Test
  void bucketsWithoutWaitsEndInReadyOrFinish() {
    run(
        b -> b,
        sync -> {
          List<Parameter> model = List.of(new Parameter(MODEL, DataType.FLOAT32, COUNT));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            int bad = sync.rank() == 1 ? 7 : -1;
            buckets.gradient(0).copyFrom(values(DataType.FLOAT32, COUNT, bad));
            CudaStream compute = ((CudaBuffer) buckets.gradient(0)).stream();
            NotFiniteException e =
                assertThrows(
                    NotFiniteException.class,
                    () -> {
                      for (int step = 0; step < 3; step++) {
                        buckets.ready(0);
                        buckets.finish();
                        awaitPastTheLibrary(compute);
                      }
                    });
            assertTrue(e.getMessage().contains("\n  rank 1: "), e::getMessage);
            sync.barrier();
          }
        });
  }

  @Test
  void closeThrowsWhatTheLastCallHasFound() {
    NotFiniteException e =
        assertThrows(
            NotFiniteException.class,
            () ->
                run(
                    b -> b,
                    sync -> {
                      DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 1_000);
                      int bad = sync.rank() == 1 ? 7 : -1;
                      gradient.copyFrom(values(DataType.FLOAT32, 1_000, bad));
                      sync.average(gradient);
                      sync.barrier(); // so that no rank's end hides the other's exception
                    }));
    assertTrue(e.getMessage().endsWith(":\n  rank 1: FLOAT32[1000], index=7"), e::getMessage);
  }
}
