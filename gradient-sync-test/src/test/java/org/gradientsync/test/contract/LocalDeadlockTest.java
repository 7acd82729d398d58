package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.IntBuffer;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs the deadlock contract with ranks as threads, and tests the cases that need threads. */
class LocalDeadlockTest extends DeadlockContract {
  private static final int RANKS = 4;

  @Override
  protected RankRunner runner() {
    return new LocalRunner(2, 5); // each test takes a second
  }

  /**
   * Only with threads: under mpirun, other tests have already made calls, which changes the numbers
   * in the table.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void communicatorsAreCalledInDifferentOrders(boolean pairs) {
    LocalRanks.run(
        RANKS,
        options -> options.set("dev.late", "PT0.6S"),
        sync -> {
          try (Communicator all = sync.communicator().duplicate();
              Communicator half = sync.communicator().split(sync.rank() / 2, 0)) {
            MismatchedCallException e =
                assertThrows(
                    MismatchedCallException.class,
                    () -> {
                      if (sync.rank() == 1 && pairs) {
                        half.send(IntBuffer.allocate(1), 0, 3);
                      } else if (sync.rank() == 1) {
                        half.barrier();
                      } else {
                        all.barrier();
                      }
                    });
            String text = e.getMessage();
            assertTrue(
                text.contains("barrier(), call=1 of communicator 2, waits for rank 1"), text);
            assertTrue(text.contains(" of communicator 3, waits for rank 0"), text);
          }
          sync.communicator().barrier(); // the parent communicator still works
        });
  }

  @Test
  void partsOfASyncAreCalledInDifferentOrders() {
    LocalRanks.run(
        RANKS,
        options -> options.set("dev.late", "PT0.6S"),
        sync -> {
          try (GradientSync first = sync.split(0, 0);
              GradientSync second = sync.split(0, 0);
              DeviceBuffer a = sync.allocate(DataType.FLOAT32, 3).named("a");
              DeviceBuffer b = sync.allocate(DataType.FLOAT32, 3).named("b")) {
            boolean crosses = sync.rank() == 0;
            String text =
                assertThrows(
                        MismatchedCallException.class,
                        () -> (crosses ? second : first).average(crosses ? b : a))
                    .getMessage();
            assertTrue(text.contains("allReduce(FLOAT32[3] \"b\", AVERAGE)"), text);
            assertTrue(text.contains("waits for rank 0"), text);
          }
          sync.barrier(); // the others are as they were
        });
  }

  /** The cycle goes through both groups of a split and the communicator of all ranks. */
  @Test
  void aCircleGoesThroughGroupsOfOneSplit() {
    LocalRanks.run(
        RANKS,
        options -> options.set("dev.late", "PT0.6S"),
        sync -> {
          try (Communicator all = sync.communicator().duplicate();
              Communicator half = sync.communicator().split(sync.rank() / 2, 0)) {
            assertThrows(
                MismatchedCallException.class,
                () -> {
                  if (sync.rank() % 2 == 0) {
                    half.receive(IntBuffer.allocate(1), 1, 0);
                  } else {
                    all.receive(IntBuffer.allocate(1), (sync.rank() + 1) % RANKS, 0);
                  }
                });
          }
        });
  }

  /** A probe holds 16 ranks at most. */
  @Test
  void sixteenRanksWaitInARing() {
    int ranks = 16;
    LocalRanks.run(
        ranks,
        sync -> {
          MismatchedCallException e =
              assertThrows(
                  MismatchedCallException.class,
                  () ->
                      sync.communicator()
                          .receive(IntBuffer.allocate(1), (sync.rank() + 1) % ranks, 0));
          assertEquals(ranks + 1, e.getMessage().lines().count(), e::getMessage);
        });
  }

  @Test
  void groupsOfOtherRanksGoOn() {
    LocalRanks.run(
        RANKS,
        sync -> {
          try (Communicator half = sync.communicator().split(sync.rank() / 2, 0)) {
            if (sync.rank() < 2) {
              assertThrows(
                  MismatchedCallException.class,
                  () -> half.receive(IntBuffer.allocate(1), 1 - half.rank(), 0));
            }
            sync.communicator().barrier();
            if (sync.rank() >= 2) {
              half.barrier();
              assertEquals(2, half.size());
            }
          }
        });
  }
}
