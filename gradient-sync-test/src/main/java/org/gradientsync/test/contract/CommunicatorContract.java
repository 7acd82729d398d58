package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests what every communicator promises. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
public abstract class CommunicatorContract {
  private static final int[] FEW = {0, 1, 3, 1000};
  private static final int[] COUNTS = {0, 1, 3, 1000, 300_001}; // the last one is sent in pieces

  /** {@return a runner of ranks of the backend under test} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  private void each(int ranks, Task task) {
    runner().run(ranks, sync -> task.run(sync.communicator()));
  }

  private interface Task {
    void run(Communicator c) throws Exception;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reportsRanksAndNodes(int ranks) {
    each(
        ranks,
        c -> {
          assertEquals(ranks, c.size());
          assertTrue(c.rank() >= 0 && c.rank() < ranks);
          assertTrue(c.localRank() >= 0 && c.localRank() < c.localSize());
          assertTrue(c.localSize() <= ranks && c.nodeCount() >= 1);
          int[] seen = new int[ranks];
          c.allGather(IntBuffer.wrap(new int[] {c.rank()}), IntBuffer.wrap(seen));
          for (int i = 0; i < ranks; i++) {
            assertEquals(i, seen[i]);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void barrierReturnsOnAllRanks(int ranks) {
    each(
        ranks,
        c -> {
          for (int i = 0; i < 50; i++) {
            c.barrier();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reducesBitExactly(int ranks) {
    each(
        ranks,
        c -> {
          for (DataType type : DataType.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              if (op == ReduceOp.AVERAGE && !type.isFloatingPoint()) {
                continue;
              }
              for (int count : op == ReduceOp.SUM ? COUNTS : FEW) {
                ByteBuffer data = Numbers.of(type, c.rank(), 0, count);
                c.allReduce(Numbers.typed(type, data), type, op);
                assertEquals(
                    -1, Numbers.reduced(type, op, ranks, 0, count).mismatch(data), type + " " + op);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void gathersBytesThatDifferInNumber(int ranks) {
    each(
        ranks,
        c -> {
          for (int unit : new int[] {0, 1, 7, 200_001}) { // the last one exceeds what is padded
            List<byte[]> all = c.allGather(bytes(c.rank(), unit));
            List<byte[]> atRoot = c.gather(bytes(c.rank(), unit), ranks - 1);
            assertEquals(ranks, all.size());
            assertEquals(c.rank() == ranks - 1 ? ranks : 0, atRoot.size());
            for (int rank = 0; rank < ranks; rank++) {
              assertArrayEquals(bytes(rank, unit), all.get(rank));
              if (!atRoot.isEmpty()) {
                assertArrayEquals(bytes(rank, unit), atRoot.get(rank));
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void bytesForDifferentRootsDoNotMatch(int ranks) {
    each(
        ranks,
        c -> {
          byte[] own = new byte[c.rank()]; // none on one of the two roots
          if (ranks > 1) {
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class, () -> c.gather(own, c.rank() == 1 ? 1 : 0));
            assertTrue(e.getMessage().contains("at different roots"), e.getMessage());
          }
          assertEquals(c.rank() == 0 ? ranks : 0, c.gather(own, 0).size());
        });
  }

  /** Different in number and content; rank 1 has none. */
  private static byte[] bytes(int rank, int unit) {
    byte[] bytes = new byte[rank == 1 ? 0 : (rank + 3) * unit];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (31 * i + 7 * rank + 1);
    }
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void broadcastsBytesOfAnyNumber(int ranks) {
    each(
        ranks,
        c -> {
          for (int root = 0; root < ranks; root++) {
            for (int count : COUNTS) {
              byte[] sent = bytes(2 * root, count);
              byte[] got = c.broadcast(c.rank() == root ? sent : null, root);
              assertArrayEquals(sent, got);
            }
            float[] numbers = {c.rank(), 0.5f * c.rank(), 3};
            c.broadcast(numbers, root);
            assertArrayEquals(new float[] {root, 0.5f * root, 3}, numbers);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void aRootWithoutBytesIsAnErrorOnEveryRank(int ranks) {
    each(
        ranks,
        c -> {
          IllegalArgumentException e =
              assertThrows(
                  IllegalArgumentException.class, () -> c.broadcast((byte[]) null, ranks - 1));
          assertTrue(e.getMessage().contains("root=" + (ranks - 1) + ", rank=" + c.rank()));
          assertEquals(ranks, c.sum(1)); // and the communicator can still be used
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void combinesOneNumberOfEachRank(int ranks) {
    each(
        ranks,
        c -> {
          boolean last = c.rank() == ranks - 1;
          assertTrue(c.any(last));
          assertEquals(ranks == 1, c.all(last));
          assertTrue(c.all(true) && !c.any(false) && !c.all(false) && c.any(true));
          assertEquals(ranks * (ranks + 1L) / 2, c.sum(c.rank() + 1L));
          assertEquals(Long.MIN_VALUE, c.sum(last ? Long.MIN_VALUE : 0));
          assertEquals(ranks - 0.5, c.max(c.rank() + 0.5));
          assertEquals(-0.5 * ranks, c.min(-0.5 * (c.rank() + 1)));
          assertEquals(Double.NaN, c.max(last ? Double.NaN : 1));
          assertEquals(Double.NEGATIVE_INFINITY, c.min(last ? Double.NEGATIVE_INFINITY : 1));
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void acceptsHeapBuffersAndParts(int ranks) {
    each(
        ranks,
        c -> {
          double[] values = {-1, c.rank(), c.rank() * 2, -1};
          DoubleBuffer part = DoubleBuffer.wrap(values, 1, 2);
          c.allReduce(part, ReduceOp.SUM);
          double sum = ranks * (ranks - 1) / 2.0;
          assertArrayEquals(new double[] {-1, sum, 2 * sum, -1}, values);
          assertEquals(1, part.position());
          long[] one = {c.rank()};
          c.allReduce(LongBuffer.wrap(one), ReduceOp.MAX);
          assertEquals(ranks - 1, one[0]);
          float[] f = {c.rank()};
          c.allReduce(FloatBuffer.wrap(f), ReduceOp.AVERAGE);
          assertEquals((ranks - 1) / 2f, f[0]);
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void broadcastsFromEveryRoot(int ranks) {
    each(
        ranks,
        c -> {
          for (int root = 0; root < ranks; root++) {
            for (DataType type : DataType.values()) {
              for (int count : type == DataType.FLOAT64 ? COUNTS : FEW) {
                ByteBuffer data = Numbers.of(type, c.rank(), 0, count);
                c.broadcast(Numbers.typed(type, data), root);
                assertEquals(Numbers.of(type, root, 0, count), data);
              }
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void gathersInRankOrder(int ranks) {
    each(
        ranks,
        c -> {
          for (int count : COUNTS) {
            ByteBuffer all = Numbers.memory(DataType.INT64, count * ranks);
            Buffer own =
                Numbers.typed(DataType.INT64, Numbers.of(DataType.INT64, c.rank(), 0, count));
            c.allGather(own, Numbers.typed(DataType.INT64, all));
            assertRanks(all, ranks, count);
            for (int root = 0; root < ranks; root++) {
              boolean isRoot = root == c.rank();
              ByteBuffer gathered = Numbers.memory(DataType.INT64, count * ranks);
              c.gather(own, isRoot ? Numbers.typed(DataType.INT64, gathered) : null, root);
              if (isRoot) {
                assertRanks(gathered, ranks, count);
              }
              ByteBuffer back = Numbers.memory(DataType.INT64, count);
              c.scatter(
                  isRoot ? Numbers.typed(DataType.INT64, gathered) : null,
                  Numbers.typed(DataType.INT64, back),
                  root);
              assertEquals(Numbers.of(DataType.INT64, c.rank(), 0, count), back);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void reduceScattersParts(int ranks) {
    each(
        ranks,
        c -> {
          for (int count : new int[] {0, 1, 777}) {
            ByteBuffer send = Numbers.of(DataType.BFLOAT16, c.rank(), 0, count * ranks);
            ByteBuffer before = Numbers.of(DataType.BFLOAT16, c.rank(), 0, count * ranks);
            ByteBuffer part = Numbers.memory(DataType.BFLOAT16, count);
            c.reduceScatter(
                Numbers.typed(DataType.BFLOAT16, send),
                Numbers.typed(DataType.BFLOAT16, part),
                DataType.BFLOAT16,
                ReduceOp.AVERAGE);
            assertEquals(
                Numbers.reduced(
                    DataType.BFLOAT16, ReduceOp.AVERAGE, ranks, (long) c.rank() * count, count),
                part);
            assertEquals(before, send);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void sendsFromRankToRank(int ranks) {
    each(
        ranks,
        c -> {
          if (ranks == 1) {
            return;
          }
          for (int count : COUNTS) {
            float[] data = new float[count];
            if (c.rank() == 0) {
              Arrays.fill(data, 7);
              c.send(FloatBuffer.wrap(data), 1, Communicator.MAX_TAG);
              c.receive(FloatBuffer.wrap(data), ranks - 1, 0);
              assertTrue(count == 0 || data[count - 1] == 7 + ranks - 1);
            } else {
              c.receive(
                  FloatBuffer.wrap(data), c.rank() - 1, c.rank() == 1 ? Communicator.MAX_TAG : 0);
              for (int i = 0; i < count; i++) {
                data[i]++;
              }
              c.send(FloatBuffer.wrap(data), (c.rank() + 1) % ranks, 0);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void exchangesHalos(int ranks) {
    each(
        ranks,
        c -> {
          int right = (c.rank() + 1) % ranks;
          int left = (c.rank() + ranks - 1) % ranks;
          int[] got = new int[2];
          c.sendReceive(
              IntBuffer.wrap(new int[] {c.rank(), 5}), right, IntBuffer.wrap(got), left, 3);
          assertArrayEquals(new int[] {left, 5}, got);
          c.sendReceive(
              IntBuffer.wrap(new int[] {c.rank(), 6}), left, IntBuffer.wrap(got), right, 3);
          assertArrayEquals(new int[] {right, 6}, got);
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void exchangesDifferentLengths(int ranks) {
    each(
        ranks,
        c -> {
          int right = (c.rank() + 1) % ranks;
          int left = (c.rank() + ranks - 1) % ranks;
          int own = 1 + c.rank() * 400_000;
          int theirs = 1 + left * 400_000;
          byte[] send = new byte[own];
          Arrays.fill(send, (byte) c.rank());
          byte[] receive = new byte[theirs];
          Arrays.fill(receive, (byte) -1);
          c.sendReceive(ByteBuffer.wrap(send), right, ByteBuffer.wrap(receive), left, 0);
          for (byte b : receive) {
            assertEquals(left, b);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void splitsIntoGroups(int ranks) {
    each(
        ranks,
        c -> {
          try (Communicator half = c.split(c.rank() % 2, -c.rank())) {
            int members = ranks / 2 + (c.rank() % 2 == 0 ? ranks % 2 : 0);
            assertEquals(members, half.size());
            assertEquals(members - 1 - c.rank() / 2, half.rank());
            int[] sum = {c.rank()};
            half.allReduce(IntBuffer.wrap(sum), ReduceOp.SUM);
            int expected = 0;
            for (int i = c.rank() % 2; i < ranks; i += 2) {
              expected += i;
            }
            assertEquals(expected, sum[0]);
          }
          Communicator none = c.split(c.rank() == 0 ? -1 : 0, 0);
          if (c.rank() == 0) {
            assertNull(none);
          } else {
            assertEquals(ranks - 1, none.size());
            assertEquals(c.rank() - 1, none.rank());
            none.barrier();
            none.close();
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void duplicatesDoNotMix(int ranks) {
    each(
        ranks,
        c -> {
          for (int i = 0; i < 30; i++) { // many times, so that tags are reused
            try (Communicator d = c.duplicate();
                Communicator e = d.duplicate()) {
              assertEquals(c.rank(), e.rank());
              long[] a = {1};
              long[] b = {c.rank()};
              e.allReduce(LongBuffer.wrap(b), ReduceOp.SUM);
              d.allReduce(LongBuffer.wrap(a), ReduceOp.SUM);
              c.barrier();
              assertEquals(ranks, a[0]);
              assertEquals(ranks * (ranks - 1L) / 2, b[0]);
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void mismatchedCallsThrowOnAllRanks(int ranks) {
    each(
        ranks,
        c -> {
          if (ranks == 1) {
            return;
          }
          boolean odd = c.rank() == ranks - 1;
          int[] data = {1, 2, 3};
          assertMismatch(
              () -> c.broadcast(IntBuffer.wrap(data, 0, odd ? 2 : 3), 0), "int[2], root=0");
          assertMismatch(
              () -> c.broadcast(odd ? FloatBuffer.allocate(3) : IntBuffer.wrap(data), 0),
              "float[3]");
          assertMismatch(
              () -> {
                if (odd) {
                  c.barrier();
                } else {
                  c.broadcast(IntBuffer.wrap(data), 0);
                }
              },
              "barrier()");
          assertMismatch(
              () -> c.allReduce(IntBuffer.wrap(data), odd ? ReduceOp.MIN : ReduceOp.MAX), "MIN");
          assertArrayEquals(new int[] {1, 2, 3}, data);
          if (c.rank() < 2) {
            int other = 1 - c.rank();
            assertMismatch(
                () -> {
                  if (c.rank() == 0) {
                    c.send(IntBuffer.wrap(data), other, 9);
                  } else {
                    c.receive(LongBuffer.allocate(2), other, 9);
                  }
                },
                "receive(long[2]");
            assertMismatch(
                () -> {
                  if (c.rank() == 0) {
                    c.send(IntBuffer.wrap(data), other, 1);
                  } else {
                    c.receive(IntBuffer.wrap(data), other, 2);
                  }
                },
                ": communicator.send(int[3], to=1, tag=1)",
                ": communicator.receive(int[3], from=0, tag=2)");
            assertArrayEquals(new int[] {1, 2, 3}, data);
          }
          c.barrier();
        });
  }

  /** Both ranks throw, and can go on. */
  @ParameterizedTest
  @MethodSource("sizes")
  void aMessageOfADeviceBufferMatchesNoneOfTheCommunicator(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              Communicator c = sync.communicator();
              if (ranks == 1) {
                return;
              }
              for (int round = 0; round < 2; round++) {
                int sender = round;
                try (DeviceBuffer buffer = sync.allocate(DataType.INT32, 2)) {
                  if (c.rank() == 0) {
                    assertMismatch(
                        () -> {
                          if (sender == 0) {
                            sync.send(buffer, 1);
                          } else {
                            sync.receive(buffer, 1);
                          }
                        },
                        "rank 1: communicator.");
                  } else if (c.rank() == 1) {
                    IntBuffer data = IntBuffer.allocate(2);
                    assertMismatch(
                        () -> {
                          if (sender == 0) {
                            c.receive(data, 0, 0);
                          } else {
                            c.send(data, 0, 0);
                          }
                        },
                        "rank 0: " + (sender == 0 ? "send(" : "receive("));
                  }
                  c.barrier();
                }
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void mismatchedPairLeavesNoPendingMessages(int ranks) {
    each(
        ranks,
        c -> {
          if (ranks < 3) {
            return;
          }
          int right = (c.rank() + 1) % ranks;
          int left = (c.rank() + ranks - 1) % ranks;
          for (int round = 0; round < 3; round++) {
            int[] got = new int[c.rank() == 1 ? 3 : 2];
            IntBuffer own = IntBuffer.wrap(new int[] {c.rank(), 5});
            if (c.rank() < 2) { // rank 1 expects more than rank 0 sends
              assertThrows(
                  MismatchedCallException.class,
                  () -> c.sendReceive(own, right, IntBuffer.wrap(got), left, 3));
            } else {
              c.sendReceive(own, right, IntBuffer.wrap(got), left, 3);
            }
            assertArrayEquals(c.rank() == 1 ? new int[3] : new int[] {left, 5}, got);
            int[] right2 = new int[1];
            c.sendReceive(
                IntBuffer.wrap(new int[] {c.rank()}), right, IntBuffer.wrap(right2), left, 3);
            assertEquals(left, right2[0]);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void threadsDuplicateConcurrently(int ranks) {
    each(
        ranks,
        c -> {
          try (Communicator a = c.duplicate();
              Communicator b = c.duplicate()) {
            Throwable[] failure = new Throwable[1];
            Thread other = new Thread(() -> splitAndSum(a, 1, failure));
            other.start();
            splitAndSum(b, 1000, failure);
            other.join();
            assertNull(failure[0]);
          }
        });
  }

  private static void splitAndSum(Communicator parent, int unit, Throwable[] failure) {
    try {
      for (int i = 0; i < 40; i++) {
        try (Communicator part = parent.duplicate()) {
          long[] sum = {unit};
          part.allReduce(LongBuffer.wrap(sum), ReduceOp.SUM);
          assertEquals((long) unit * parent.size(), sum[0]);
        }
      }
    } catch (RuntimeException | Error e) {
      failure[0] = e;
    }
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void rejectsInvalidArguments(int ranks) {
    each(
        ranks,
        c -> {
          IntBuffer one = IntBuffer.allocate(1);
          assertThrows(NullPointerException.class, () -> c.broadcast((Buffer) null, 0));
          refused(() -> c.broadcast(one, ranks), "root=" + ranks);
          refused(() -> c.broadcast(one, -1), "root=-1");
          refused(() -> c.broadcast(one.asReadOnlyBuffer(), 0), "read-only");
          refused(() -> c.broadcast(CharBuffer.allocate(1), 0), "char");
          refused(() -> c.allReduce(ShortBuffer.allocate(1), ReduceOp.SUM), "ambiguous");
          refused(() -> c.allReduce(one, ReduceOp.AVERAGE), "AVERAGE".toLowerCase());
          refused(() -> c.allReduce(one, DataType.FLOAT32, ReduceOp.SUM), "does not match");
          boolean little = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
          ByteOrder foreign = little ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
          ByteBuffer bytes = ByteBuffer.allocate(8 * ranks).order(foreign);
          ByteBuffer part = ByteBuffer.allocate(8).order(ByteOrder.nativeOrder());
          refused(() -> c.allReduce(bytes, DataType.FLOAT32, ReduceOp.SUM), "native byte order");
          refused(
              () -> c.reduceScatter(bytes, part, DataType.FLOAT32, ReduceOp.SUM),
              "native byte order");
          part.limit(7);
          refused(() -> c.allReduce(part, DataType.FLOAT32, ReduceOp.SUM), "whole number");
          assertThrows(NullPointerException.class, () -> c.allReduce(one, null, ReduceOp.SUM));
          assertThrows(NullPointerException.class, () -> c.allReduce(one, DataType.INT32, null));
          refused(() -> c.allGather(one, IntBuffer.allocate(ranks + 1)), "size=" + ranks);
          refused(() -> c.gather(one, FloatBuffer.allocate(ranks), c.rank()), "does not match");
          refused(() -> c.send(one, c.rank(), 0), "itself");
          refused(() -> c.send(one, ranks, 0), "destination=" + ranks);
          refused(() -> c.receive(one, -1, 0), "source=-1");
          if (ranks > 1) {
            int other = c.rank() == 0 ? 1 : 0;
            refused(() -> c.send(one, other, Communicator.MAX_TAG + 1), "tag=");
            refused(() -> c.receive(one, other, -1), "tag=-1");
          }
          c.barrier();
          Communicator d = c.duplicate();
          d.close();
          d.close();
          assertThrows(IllegalStateException.class, d::barrier);
          IllegalStateException e =
              assertThrows(IllegalStateException.class, () -> d.allReduce(one, ReduceOp.SUM));
          assertTrue(e.getMessage().startsWith("communicator is closed"), e.getMessage());
        });
  }

  private static void assertRanks(ByteBuffer all, int ranks, int count) {
    for (int rank = 0; rank < ranks; rank++) {
      assertEquals(
          Numbers.of(DataType.INT64, rank, 0, count), all.slice(rank * count * 8, count * 8));
    }
  }

  private static void assertMismatch(Runnable call, String... parts) {
    MismatchedCallException e = assertThrows(MismatchedCallException.class, call::run);
    for (String part : parts) {
      assertTrue(e.getMessage().contains(part), e.getMessage());
    }
  }

  private static void refused(Runnable call, String part) {
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, call::run);
    assertTrue(e.getMessage().contains(part), e.getMessage());
  }
}
