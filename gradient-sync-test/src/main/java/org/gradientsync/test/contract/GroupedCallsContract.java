package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What calls in a group must do: {@link org.gradientsync.GradientSync#grouped}. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(240)
public abstract class GroupedCallsContract {
  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  Stream<Integer> severalRanks() {
    return sizes().filter(ranks -> ranks > 1);
  }

  private static void fill(DeviceBuffer buffer, int rank, long first) {
    buffer.copyFrom(Numbers.of(buffer.type(), rank, first, (int) buffer.count()));
  }

  private static void assertHas(ByteBuffer expected, DeviceBuffer buffer, String what) {
    ByteBuffer actual = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(actual);
    assertEquals(-1, expected.mismatch(actual), what + ", buffer=" + buffer);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void manySmallAveragesGiveThePromisedBits(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              List<DeviceBuffer> buffers = new ArrayList<>();
              DataType[] types = {DataType.FLOAT32, DataType.BFLOAT16, DataType.FLOAT64};
              for (int i = 0; i < 100; i++) {
                buffers.add(
                    sync.allocate(types[i % 3], i == 7 ? 100_000 : 5 + 13 * i).named("w" + i));
              }
              DeviceBuffer whole = sync.allocate(DataType.INT32, 50);
              for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 100; i++) {
                  fill(buffers.get(i), sync.rank(), i + round);
                }
                fill(whole, sync.rank(), round);
                DeviceBuffer slice = whole.slice(3, 10);
                sync.grouped(
                    () -> {
                      buffers.forEach(sync::average);
                      sync.allReduce(slice, ReduceOp.MAX);
                    });
                for (int i = 0; i < 100; i++) {
                  DeviceBuffer buffer = buffers.get(i);
                  ByteBuffer expected =
                      Numbers.reduced(
                          buffer.type(), ReduceOp.AVERAGE, ranks, i + round, (int) buffer.count());
                  assertHas(expected, buffer, "round=" + round + ", i=" + i);
                }
                ByteBuffer ints = Numbers.of(DataType.INT32, sync.rank(), round, 50);
                ints.put(
                    12, Numbers.reduced(DataType.INT32, ReduceOp.MAX, ranks, round + 3, 10), 0, 40);
                assertHas(ints, whole, "round=" + round);
              }
              buffers.forEach(DeviceBuffer::close);
              whole.close();
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void messagesCrossInAnyOrder(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int rank = sync.rank();
              for (int count : new int[] {0, 1, 1_000, 4_300_001}) {
                if (count > 1_000 && ranks > 3) {
                  continue;
                }
                DeviceBuffer[] out = new DeviceBuffer[ranks];
                DeviceBuffer[] in = new DeviceBuffer[ranks];
                for (int peer = 0; peer < ranks; peer++) {
                  out[peer] = sync.allocate(DataType.FLOAT32, count);
                  in[peer] = sync.allocate(DataType.FLOAT32, count);
                }
                for (int round = 0; round < 2; round++) {
                  for (int peer = 0; peer < ranks; peer++) {
                    fill(out[peer], rank, 31L * peer + round);
                  }
                  boolean odd = rank % 2 == 1;
                  sync.grouped(
                      () -> {
                        for (int i = 0; i < ranks; i++) {
                          int peer = odd ? ranks - 1 - i : i;
                          if (peer == rank) {
                            continue;
                          }
                          if (odd) {
                            sync.receive(in[peer], peer);
                            sync.send(out[peer], peer);
                          } else {
                            sync.send(out[peer], peer);
                            sync.receive(in[peer], peer);
                          }
                        }
                      });
                  for (int peer = 0; peer < ranks; peer++) {
                    if (peer != rank) {
                      ByteBuffer expected =
                          Numbers.of(DataType.FLOAT32, peer, 31L * rank + round, count);
                      assertHas(expected, in[peer], "from rank " + peer + ", count=" + count);
                    }
                  }
                }
                for (int peer = 0; peer < ranks; peer++) {
                  out[peer].close();
                  in[peer].close();
                }
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void messagesBetweenTwoRanksMatchInOrder(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer a = sync.allocate(DataType.INT32, 3);
                  DeviceBuffer b = sync.allocate(DataType.INT32, 5)) {
                a.copyFrom(new int[] {sync.rank(), 1, 2});
                b.copyFrom(new int[] {3, 4, 5, 6, sync.rank()});
                sync.grouped(
                    () -> {
                      if (sync.rank() == 0) {
                        sync.send(a, 1);
                        sync.send(b, 1);
                      } else if (sync.rank() == 1) {
                        sync.receive(a, 0);
                        sync.receive(b, 0);
                      }
                    });
                int[] values = new int[5];
                b.copyTo(values);
                assertEquals(sync.rank() == 1 ? 0 : sync.rank(), values[4]);
                if (sync.rank() == 0) {
                  sync.grouped(() -> sync.send(b, 1)); // and with one that is not in a group
                } else if (sync.rank() == 1) {
                  sync.receive(b, 0);
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void allKindsOfCallsCanBeGrouped(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType type = DataType.FLOAT32;
              try (DeviceBuffer a = sync.allocate(type, 10);
                  DeviceBuffer b = sync.allocate(type, 20);
                  DeviceBuffer part = sync.allocate(type, 6);
                  DeviceBuffer all = sync.allocate(type, 6L * ranks);
                  DeviceBuffer other = sync.allocate(type, 7)) {
                fill(a, sync.rank(), 0);
                fill(b, sync.rank(), 1);
                fill(part, sync.rank(), 2);
                fill(other, sync.rank(), 3);
                sync.grouped(
                    () -> {
                      sync.allReduce(a, ReduceOp.SUM);
                      sync.broadcast(b, ranks - 1);
                      sync.grouped(() -> sync.allGather(part, all));
                      sync.reduce(other, ReduceOp.MIN, 0);
                    });
                assertHas(Numbers.reduced(type, ReduceOp.SUM, ranks, 0, 10), a, "allReduce");
                assertHas(Numbers.of(type, ranks - 1, 1, 20), b, "broadcast");
                assertHas(Numbers.of(type, 0, 2, 6), all.slice(0, 6), "allGather");
                assertHas(
                    sync.rank() == 0
                        ? Numbers.reduced(type, ReduceOp.MIN, ranks, 3, 7)
                        : Numbers.of(type, sync.rank(), 3, 7),
                    other,
                    "reduce");
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void aBufferThatIsUsedTwiceIsReducedTwice(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer buffer = sync.allocate(DataType.INT32, 4)) {
                buffer.copyFrom(new int[] {1, 1, 1, 1});
                sync.grouped(
                    () -> {
                      sync.allReduce(buffer, ReduceOp.SUM);
                      sync.allReduce(buffer.slice(1, 2), ReduceOp.SUM);
                    });
                int[] values = new int[4];
                buffer.copyTo(values);
                assertArrayEquals(new int[] {ranks, ranks * ranks, ranks * ranks, ranks}, values);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void groupsThatDifferAreNamed(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 5).named("a");
                  DeviceBuffer b = sync.allocate(DataType.FLOAT32, 6).named("b")) {
                a.copyFrom(new float[] {1, 2, 3, 4, sync.rank()});
                String text =
                    assertThrows(
                            MismatchedCallException.class,
                            () ->
                                sync.grouped(
                                    () -> {
                                      sync.average(odd ? b : a);
                                      sync.average(odd ? a : b);
                                    }))
                        .getMessage();
                assertTrue(text.contains("rank 0: allReduce(FLOAT32["), text);
                assertTrue(text.contains("rank " + (ranks - 1) + ": "), text);
                float[] values = new float[5];
                a.copyTo(values);
                assertArrayEquals(new float[] {1, 2, 3, 4, sync.rank()}, values);
                sync.average(a); // the sync still works
              }
            });
  }

  /** They are not those with which the group was prepared. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void namesThatAreGivenAfterAFirstGroupAreCompared(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 5);
                  DeviceBuffer b = sync.allocate(DataType.FLOAT32, 5)) {
                Runnable calls =
                    () ->
                        sync.grouped(
                            () -> {
                              sync.average(odd ? b : a);
                              sync.average(odd ? a : b);
                            });
                calls.run();
                a.named("weight").copyFrom(new float[] {1, 2, 3, 4, sync.rank()});
                b.named("bias");
                String text = assertThrows(MismatchedCallException.class, calls::run).getMessage();
                assertTrue(text.contains("weight"), text);
                float[] values = new float[5];
                a.copyTo(values);
                assertArrayEquals(new float[] {1, 2, 3, 4, sync.rank()}, values);
                sync.average(a);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void messagesThatDifferThrowAndTheOthersDoNotWait(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int next = (sync.rank() + 1) % ranks;
              int previous = (sync.rank() + ranks - 1) % ranks;
              boolean odd = sync.rank() == 1;
              try (DeviceBuffer in = sync.allocate(DataType.FLOAT32, 6);
                  DeviceBuffer out = sync.allocate(DataType.FLOAT32, 6)) {
                fill(out, sync.rank(), 0);
                Runnable calls =
                    () ->
                        sync.grouped(
                            () -> {
                              sync.send(out, next);
                              sync.receive(odd ? in.slice(0, 5) : in, previous);
                            });
                if (sync.rank() < 2) {
                  String text =
                      assertThrows(MismatchedCallException.class, calls::run).getMessage();
                  assertTrue(text.contains("rank 0: send(FLOAT32[6], to=1)"), text);
                  assertTrue(text.contains("rank 1: receive(FLOAT32[5], from=0)"), text);
                } else {
                  calls.run();
                }
                if (odd) {
                  assertHas(Numbers.memory(DataType.FLOAT32, 6), in, "not received");
                } else {
                  assertHas(Numbers.of(DataType.FLOAT32, previous, 0, 6), in, "received");
                }
              }
            });
  }

  /** Small buffers are packed behind large ones, but not if they share elements. */
  @ParameterizedTest
  @MethodSource("sizes")
  void smallBuffersKeepTheirOrderBesideALargeOneOfTheSameElements(int ranks) {
    int count = (4 << 20) / Integer.BYTES + 1; // larger than what any device packs
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer large = sync.allocate(DataType.INT32, count);
                  DeviceBuffer other = sync.allocate(DataType.INT32, 3)) {
                int[] values = new int[count];
                Arrays.fill(values, 1);
                large.copyFrom(values);
                other.copyFrom(new int[] {1, 2, 3});
                sync.grouped(
                    () -> {
                      sync.allReduce(large.slice(5, 2), ReduceOp.SUM);
                      sync.allReduce(other, ReduceOp.SUM);
                      sync.allReduce(large, ReduceOp.MAX);
                      sync.allReduce(large.slice(6, 2), ReduceOp.SUM);
                    });
                int[] expected = values.clone();
                Arrays.fill(expected, 5, 7, ranks);
                Arrays.setAll(expected, i -> i == 6 || i == 7 ? expected[i] * ranks : expected[i]);
                large.copyTo(values);
                assertArrayEquals(expected, values);
                int[] others = new int[3];
                other.copyTo(others);
                assertArrayEquals(new int[] {ranks, 2 * ranks, 3 * ranks}, others);
              }
            });
  }

  /** One rank sends what it averages, and the root gathers in place: the ranks pack alike. */
  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void buffersThatOneRankUsesTwiceDoNotMatter(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (DeviceBuffer a = sync.allocate(DataType.INT32, 2);
                  DeviceBuffer b = sync.allocate(DataType.INT32, 3);
                  DeviceBuffer c = sync.allocate(DataType.INT32, 2);
                  DeviceBuffer all = sync.allocate(DataType.INT32, 2L * ranks)) {
                a.copyFrom(new int[] {1, 2});
                b.copyFrom(new int[] {3, 4, 5});
                DeviceBuffer own = sync.rank() == 0 ? all.slice(0, 2) : c;
                sync.grouped(
                    () -> {
                      sync.allReduce(a, ReduceOp.SUM);
                      sync.allReduce(b, ReduceOp.SUM);
                      sync.gather(own, all, 0);
                      if (sync.rank() == 0) {
                        sync.send(a, 1);
                      } else if (sync.rank() == 1) {
                        sync.receive(c, 0);
                      }
                    });
                int[] values = new int[2];
                (sync.rank() == 1 ? c : a).copyTo(values);
                assertArrayEquals(new int[] {ranks, 2 * ranks}, values);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void buffersThatAreClosedInAGroupAreRefused(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DeviceBuffer a = sync.allocate(DataType.INT32, 2);
              DeviceBuffer b = sync.allocate(DataType.INT32, 3);
              assertThrows(
                  IllegalStateException.class,
                  () ->
                      sync.grouped(
                          () -> {
                            sync.allReduce(a, ReduceOp.SUM);
                            sync.allReduce(b, ReduceOp.SUM);
                            b.close();
                          }));
              sync.allReduce(a, ReduceOp.SUM);
              a.close();
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void whatCannotBeGroupedIsRefused(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              int peer = (sync.rank() + 1) % ranks;
              try (DeviceBuffer a = sync.allocate(DataType.INT32, 5);
                  DeviceBuffer part = a.slice(4, 1)) {
                a.copyFrom(new int[] {1, 1, 1, 1, 1});
                for (Runnable call :
                    List.<Runnable>of(
                        sync::barrier,
                        () -> sync.register(a),
                        () -> sync.split(0, 0),
                        sync::survivors,
                        () -> {
                          sync.send(a, peer);
                          sync.receive(part, peer); // while it is sent
                        },
                        () -> sync.communicator().barrier(),
                        () -> sync.average(a))) {
                  assertThrows(
                      RuntimeException.class,
                      () ->
                          sync.grouped(
                              () -> {
                                sync.allReduce(a, ReduceOp.SUM);
                                call.run();
                              }));
                }
                assertThrows(NullPointerException.class, () -> sync.grouped(null));
                sync.grouped(() -> {});
                int[] values = new int[5];
                a.copyTo(values);
                assertArrayEquals(new int[] {1, 1, 1, 1, 1}, values); // nothing has run
                sync.allReduce(a, ReduceOp.SUM);
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void valuesThatAreNotFiniteAreNamedByTheirBuffer(int ranks) {
    runner()
        .run(
            ranks,
            builder -> builder.requireFinite(true),
            sync -> {
              try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 5).named("a");
                  DeviceBuffer b = sync.allocate(DataType.FLOAT32, 6).named("b")) {
                a.copyFrom(new float[5]);
                float[] values = new float[6];
                values[2] = sync.rank() == 1 ? Float.NaN : 0;
                b.copyFrom(values);
                String text =
                    assertThrows(
                            NotFiniteException.class,
                            () -> {
                              sync.grouped(
                                  () -> {
                                    sync.average(a);
                                    sync.average(b);
                                  });
                              b.copyTo(new float[6]);
                            })
                        .getMessage();
                assertTrue(text.contains("FLOAT32[6] \"b\"") && text.contains("index=2"), text);
              }
            });
  }
}
