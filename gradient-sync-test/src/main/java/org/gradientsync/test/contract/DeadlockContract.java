package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.IntBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests the deadlock detector: ranks that wait for each other all get an exception long before the
 * time-out, and late ranks do not. Needs two ranks or more.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(30) // the time-out of the ranks is five minutes
public abstract class DeadlockContract {
  private static final String BEGIN = "the ranks wait for each other, rank=";
  private static final int LATE_MILLIS = 700; // longer than a rank waits before it probes twice

  /** {@return a runner of ranks of the backend under test} */
  protected abstract RankRunner runner();

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  private interface Calls {
    void make(GradientSync sync, Communicator c) throws Exception;
  }

  /** Expects every rank to throw a table with these lines. */
  private void deadlockDetector(int ranks, Calls calls, String... lines) {
    runner()
        .run(
            ranks,
            sync -> {
              MismatchedCallException e =
                  assertThrows(
                      MismatchedCallException.class, () -> calls.make(sync, sync.communicator()));
              String text = e.getMessage();
              assertTrue(text.startsWith(BEGIN + sync.rank() + ", in="), text);
              for (String line : lines) {
                assertTrue(text.contains(line), text);
              }
            });
  }

  private static IntBuffer ints(int count) {
    return IntBuffer.allocate(count);
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsSendAgainstBarrier(int ranks) {
    int last = ranks - 1;
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() == last) {
            c.send(ints(3), 0, 4);
          } else {
            c.barrier();
          }
        },
        ": barrier(), call=1, waits for rank " + last,
        ": communicator.send(int[3], to=0, tag=4), waits for rank 0");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsReceiveAgainstAverage(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              float[] values = {sync.rank(), 2, 3};
              try (DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 3)) {
                gradient.copyFrom(values);
                sync.average(gradient.named("layer"));
                sync.communicator().barrier();
                gradient.copyFrom(values);
                MismatchedCallException e =
                    assertThrows(
                        MismatchedCallException.class,
                        () -> {
                          if (sync.rank() == 0) {
                            sync.communicator().receive(ints(1), 1, 0);
                          } else {
                            sync.average(gradient);
                          }
                        });
                String text = e.getMessage();
                assertTrue(text.contains(": allReduce(FLOAT32[3] \"layer\", AVERAGE)"), text);
                assertTrue(text.contains(": communicator.receive(int[1], from=1, tag=0)"), text);
                float[] after = new float[3];
                gradient.copyTo(after);
                assertArrayEquals(values, after);
              }
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsTwoSendsToEachOther(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() < 2) {
            c.send(ints(1), 1 - c.rank(), 2047);
          } else {
            c.barrier();
          }
        },
        ": communicator.send(int[1], to=0, tag=2047), waits for rank 0",
        ": communicator.send(int[1], to=1, tag=2047), waits for rank 1");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsGroupOfMessagesAgainstBarrier(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 2)) {
            if (c.rank() == 0) {
              sync.grouped(() -> sync.send(buffer, 1));
            } else {
              c.barrier();
            }
          }
        },
        ": send(FLOAT32[2], to=1), waits for rank 1",
        ": barrier(), call=1, waits for rank 0");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsRingOfReceives(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> c.receive(ints(1), (c.rank() + ranks - 1) % ranks, 0),
        ": communicator.receive(int[1], from=0, tag=0), waits for rank 0",
        ": communicator.receive(int[1], from=" + (ranks - 1) + ", tag=0), waits for rank ");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsBarrierAtEndOfRingExchange(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() == ranks - 1) {
            c.barrier();
          } else {
            int right = (c.rank() + 1) % ranks;
            c.sendReceive(ints(2), right, ints(2), (c.rank() + ranks - 1) % ranks, 1);
          }
        },
        ": barrier(), call=1, waits for rank 0",
        ranks == 2
            ? ": communicator.send(int[2], to=1, tag=1), waits for rank 1"
            : ": communicator.receive(int[2], from=%s, tag=1), waits for rank %s"
                .formatted(ranks - 1, ranks - 1));
  }

  /** Both neighbours of rank 0 are in the ring exchange; it waits for their answers. */
  @ParameterizedTest
  @MethodSource("sizes")
  void detectsBarrierInMiddleOfRingExchange(int ranks) {
    int middle = ranks / 2;
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() == middle) {
            c.barrier();
          } else {
            int right = (c.rank() + 1) % ranks;
            c.sendReceive(ints(2), right, ints(2), (c.rank() + ranks - 1) % ranks, 1);
          }
        },
        ": barrier(), call=1, waits for rank 0");
  }

  /** The same on device buffers: those that have met must not wait for each other's data. */
  @ParameterizedTest
  @MethodSource("sizes")
  void detectsBarrierInMiddleOfRingOfBuffers(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() == ranks / 2) {
            c.barrier();
            return;
          }
          try (DeviceBuffer out = sync.allocate(DataType.FLOAT32, 2_000_000);
              DeviceBuffer in = sync.allocate(DataType.FLOAT32, 2_000_000)) {
            sync.grouped(
                () -> {
                  sync.send(out, (c.rank() + 1) % ranks);
                  sync.receive(in, (c.rank() + ranks - 1) % ranks);
                });
          }
        },
        ": barrier(), call=1, waits for rank 0");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void detectsBarrierBehindChainOfSends(int ranks) {
    if (ranks < 3) {
      return;
    }
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() == 1) {
            c.send(ints(1), 2, 0);
          } else if (c.rank() == 2) {
            c.sendReceive(ints(1), 0, ints(1), 1, 0);
          } else {
            c.barrier();
          }
        },
        ": barrier(), call=1, waits for rank ");
  }

  /** After a mismatch the call is over on both sides, and for the partners of both. */
  @ParameterizedTest
  @MethodSource("sizes")
  void toleratesLateRanksAndDetectsCyclesAfterMismatch(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              Communicator c = sync.communicator();
              int right = (c.rank() + 1) % ranks;
              int left = (c.rank() + ranks - 1) % ranks;
              try { // rank 1 expects more than rank 0 sends
                c.sendReceive(ints(2), right, ints(c.rank() == 1 ? 3 : 2), left, 3);
              } catch (MismatchedCallException e) {
                assertTrue(e.getMessage().contains("do not match"), e::toString);
              }
              if (c.rank() == 0) {
                Thread.sleep(LATE_MILLIS);
              }
              c.sendReceive(ints(2), right, ints(2), left, 3);
              MismatchedCallException e =
                  assertThrows(MismatchedCallException.class, () -> c.receive(ints(2), left, 3));
              assertTrue(e.getMessage().startsWith(BEGIN), e::toString);
            });
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void ranksThatArriveLaterAlsoThrow(int ranks) {
    deadlockDetector(
        ranks,
        (sync, c) -> {
          if (c.rank() < 2) {
            c.receive(ints(1), 1 - c.rank(), 0);
          } else {
            Thread.sleep(LATE_MILLIS + 200L * c.rank());
            c.barrier();
          }
        },
        ": communicator.receive(int[1], from=0, tag=0), waits for rank 0");
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void chainOfLateRanksIsNoDeadlock(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              Communicator c = sync.communicator();
              for (int round = 0; round < 2; round++) {
                IntBuffer data = IntBuffer.wrap(new int[] {round, c.rank()});
                if (c.rank() == ranks - 1) {
                  Thread.sleep(LATE_MILLIS);
                } else {
                  c.receive(data, c.rank() + 1, 5);
                }
                if (c.rank() > 0) {
                  c.send(data, c.rank() - 1, 5);
                }
                assertEquals(ranks - 1, data.get(1));
                c.barrier(); // the others have waited in it
              }
            });
  }

  /** A probe may reach a rank after the call it asks about is over. */
  @ParameterizedTest
  @MethodSource("sizes")
  void rankThatHasLeftTheCallIsNotMissing(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              Communicator c = sync.communicator();
              switch (c.rank()) {
                case 0 -> {
                  c.receive(ints(1), 1, 0);
                  if (ranks > 2) {
                    c.send(ints(1), 2, 2);
                  }
                }
                case 1 -> {
                  Thread.sleep(100);
                  if (ranks > 2) {
                    c.receive(ints(1), 2, 1);
                  }
                  Thread.sleep(LATE_MILLIS);
                  c.send(ints(1), 0, 0);
                }
                case 2 -> {
                  Thread.sleep(600);
                  c.send(ints(1), 1, 1);
                  c.receive(ints(1), 0, 2);
                }
                default -> {}
              }
              c.barrier();
            });
  }

  /** On each rank two threads wait at the same time, each in its own communicator. */
  @ParameterizedTest
  @MethodSource("sizes")
  void lateThreadsAreNoDeadlock(int ranks) {
    runner()
        .run(
            ranks,
            options -> options.set("dev.late", Duration.ofMillis(LATE_MILLIS / 2).toString()),
            sync -> {
              try (Communicator a = sync.communicator().duplicate();
                  Communicator b = sync.communicator().duplicate()) {
                AtomicReference<Throwable> failure = new AtomicReference<>();
                boolean first = sync.rank() == 0;
                Thread other =
                    new Thread(
                        () -> {
                          try {
                            b.barrier();
                            Thread.sleep(first ? LATE_MILLIS : 0);
                            b.barrier();
                          } catch (Throwable e) {
                            failure.set(e);
                          }
                        });
                other.start();
                a.barrier();
                Thread.sleep(first ? 0 : LATE_MILLIS);
                a.barrier();
                other.join();
                assertNull(failure.get());
              }
            });
  }
}
