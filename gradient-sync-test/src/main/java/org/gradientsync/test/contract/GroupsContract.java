package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What the parts of a sync must do: {@link GradientSync#split}. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class GroupsContract {
  private static final DataType FLOAT = DataType.FLOAT32;
  private static final int COUNT = 4_099;

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> severalRanks() {
    return sizes().filter(ranks -> ranks > 1);
  }

  private static void assertAverages(GradientSync part, DeviceBuffer buffer, int first) {
    int count = (int) buffer.count();
    buffer.copyFrom(Numbers.of(FLOAT, part.rank(), first, count));
    part.average(buffer);
    ByteBuffer actual = Numbers.memory(FLOAT, count);
    buffer.copyTo(actual);
    ByteBuffer expected = Numbers.reduced(FLOAT, ReduceOp.AVERAGE, part.size(), first, count);
    assertEquals(-1, expected.mismatch(actual), () -> "rank=" + part.rank() + ", first=" + first);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void partsAverageAmongThemselves(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int color = sync.rank() % 2;
              try (DeviceBuffer before = sync.allocate(FLOAT, COUNT);
                  GradientSync part = sync.split(color, sync.rank());
                  DeviceBuffer after = part.allocate(FLOAT, COUNT + 3)) {
                assertEquals((ranks + 1 - color) / 2, part.size());
                assertEquals(sync.rank() / 2, part.rank());
                assertSame(sync.device(), part.device());
                for (int round = 0; round < 3; round++) {
                  assertAverages(part, before, round);
                  assertAverages(sync, before, 2 * round);
                  assertAverages(sync, after.slice(3, COUNT), 3 * round);
                  assertAverages(part, after.slice(1, COUNT), 4 * round);
                  part.barrier();
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void keysOrderThePartAndNegativeColorsJoinNone(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (GradientSync reversed = sync.split(7, -sync.rank())) {
                assertEquals(ranks - 1 - sync.rank(), reversed.rank());
                int[] own = {sync.rank()};
                int[] all = new int[ranks];
                reversed.communicator().allGather(IntBuffer.wrap(own), IntBuffer.wrap(all));
                for (int i = 0; i < ranks; i++) {
                  assertEquals(ranks - 1 - i, all[i]);
                }
              }
              GradientSync others = sync.split(sync.rank() == 0 ? -1 : 3, 0);
              if (sync.rank() == 0) {
                assertNull(others);
              } else {
                try (others;
                    DeviceBuffer buffer = others.allocate(FLOAT, 5)) {
                  assertEquals(ranks - 1, others.size());
                  assertAverages(others, buffer, 0);
                }
              }
              sync.barrier();
            });
  }

  /** As tensor-parallel rows and data-parallel columns of ranks. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void rowsAndColumnsShareABuffer(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (GradientSync row = sync.split(sync.rank() / 2, sync.rank());
                  GradientSync column = sync.split(sync.rank() % 2, sync.rank());
                  GradientSync inner = row.split(0, -row.rank());
                  DeviceBuffer buffer = column.allocate(FLOAT, COUNT)) {
                for (int round = 0; round < 5; round++) {
                  assertAverages(row, buffer, round);
                  assertAverages(column, buffer, round);
                  assertAverages(inner, buffer, round);
                  assertAverages(sync, buffer, round);
                }
                column.broadcast(buffer, column.size() - 1);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void closingASyncClosesItsPartsAndNotTheOtherWayRound(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              GradientSync part = sync.split(0, 0);
              GradientSync inner = part.split(0, 0);
              GradientSync other = sync.split(0, 0);
              DeviceBuffer buffer = inner.allocate(FLOAT, 7);
              assertAverages(inner, buffer, 0);
              sync.barrier();
              part.close();
              part.close();
              for (GradientSync closed : List.of(part, inner)) {
                assertThrows(IllegalStateException.class, () -> closed.average(buffer));
                assertThrows(IllegalStateException.class, closed::barrier);
                assertThrows(IllegalStateException.class, () -> closed.allocate(FLOAT, 1));
                assertThrows(IllegalStateException.class, () -> closed.split(0, 0));
              }
              assertAverages(other, buffer, 1);
              assertAverages(sync, buffer, 2);
              sync.barrier();
              sync.close();
              assertThrows(IllegalStateException.class, () -> other.average(buffer));
              assertThrows(IllegalStateException.class, () -> buffer.copyTo(new float[7]));
              buffer.close();
              other.close();
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void ranksThatSplitAndAverageAreNamed(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(FLOAT, 5).named("w");
                  GradientSync part = sync.split(0, 0)) {
                buffer.copyFrom(new float[] {1, 2, 3, 4, 5});
                String text =
                    assertThrows(
                            MismatchedCallException.class,
                            () -> {
                              if (sync.rank() == 1) {
                                part.split(0, 0);
                              } else {
                                part.average(buffer);
                              }
                            })
                        .getMessage();
                assertTrue(text.contains("rank 0: allReduce(FLOAT32[5] \"w\", AVERAGE)"), text);
                assertTrue(text.contains("rank 1: split()"), text);
                float[] values = new float[5];
                buffer.copyTo(values);
                assertEquals(5, values[4]);
                assertAverages(sync, buffer, 0); // the other group is unharmed
                assertAverages(part, buffer, 1);
              }
            });
  }

  /** A rank comes late to one group; the other group's averages do not wait for it. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void groupsDoNotWaitForEachOther(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (GradientSync first = sync.split(0, 0);
                  GradientSync second = sync.split(0, 0);
                  DeviceBuffer a = sync.allocate(FLOAT, COUNT);
                  DeviceBuffer b = sync.allocate(FLOAT, COUNT)) {
                boolean late = sync.rank() == ranks - 1;
                Throwable[] failure = new Throwable[1];
                Thread thread =
                    new Thread(
                        () -> {
                          for (int round = 0; round < 10; round++) {
                            assertAverages(first, a, round);
                          }
                        });
                thread.setUncaughtExceptionHandler((t, e) -> failure[0] = e);
                if (!late) {
                  thread.start();
                }
                for (int round = 0; round < 10; round++) {
                  assertAverages(second, b, round);
                }
                second.barrier();
                if (late) {
                  thread.start();
                }
                thread.join();
                if (failure[0] != null) {
                  throw new AssertionError(failure[0]);
                }
                sync.barrier();
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void bucketsAverageInAPart(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (GradientSync part = sync.split(sync.rank() / 2, sync.rank());
                  GradientBuckets buckets =
                      GradientBuckets.builder(
                              part,
                              List.of(
                                  new Parameter("w", FLOAT, COUNT), new Parameter("b", FLOAT, 3)))
                          .bucketBytes(64)
                          .build()) {
                for (int step = 0; step < 3; step++) {
                  for (int p = buckets.size() - 1; p >= 0; p--) {
                    DeviceBuffer gradient = buckets.gradient(p);
                    gradient.copyFrom(Numbers.of(FLOAT, part.rank(), step, (int) gradient.count()));
                    buckets.ready(p);
                  }
                  buckets.finish();
                  for (int p = 0; p < buckets.size(); p++) {
                    int count = (int) buckets.gradient(p).count();
                    ByteBuffer actual = Numbers.memory(FLOAT, count);
                    buckets.gradient(p).copyTo(actual);
                    assertEquals(
                        -1,
                        Numbers.reduced(FLOAT, ReduceOp.AVERAGE, part.size(), step, count)
                            .mismatch(actual));
                  }
                }
              }
            });
  }

  /**
   * Two groups of the same ranks, in crossing orders: a deadlock, or on a device a time-out. Under
   * mpirun, where other threads have made calls, a time-out as well.
   */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void crossingOrdersEndInExceptionsOnAllRanks(int ranks) {
    runner()
        .run(
            ranks,
            builder -> builder.timeout(Duration.ofSeconds(5)).set("dev.late", "PT0.6S"),
            sync -> {
              GradientSync first = sync.split(0, 0);
              GradientSync second = sync.split(0, 0);
              DeviceBuffer a = sync.allocate(FLOAT, 64).named("a");
              DeviceBuffer b = sync.allocate(FLOAT, 64).named("b");
              boolean crosses = sync.rank() == 0;
              sync.barrier();
              GradientSyncException e =
                  assertThrows(
                      GradientSyncException.class,
                      () -> {
                        (crosses ? second : first).average(crosses ? b : a);
                        (crosses ? first : second).average(crosses ? a : b);
                        a.copyTo(new float[64]);
                        b.copyTo(new float[64]);
                      });
              assertTrue(e.getMessage().contains("allReduce(FLOAT32[64]"), e.getMessage());
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void manyPartsComeAndGo(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(FLOAT, 33)) {
                for (int i = 0; i < 12; i++) {
                  try (GradientSync part = sync.split((sync.rank() + i) % 2, i * sync.rank())) {
                    assertAverages(part, buffer, i);
                    assertNotEquals(0, part.size());
                  }
                }
              }
            });
  }
}
