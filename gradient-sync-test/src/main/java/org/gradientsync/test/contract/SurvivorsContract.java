package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How ranks that are threads must go on without others: {@link GradientSync#survivors}. The lost
 * ranks fail with a {@link Lost}.
 */
@Timeout(60)
public abstract class SurvivorsContract {
  private static final int COUNT = 1_001;

  /** A rank's own failure. */
  protected static final class Lost extends RuntimeException {
    private static final long serialVersionUID = 1;

    Lost(int rank) {
      super("lost " + rank);
    }
  }

  /**
   * Sets the device and the reducer under test.
   *
   * @param builder of each rank's sync
   * @return the builder
   */
  protected abstract GradientSync.Builder options(GradientSync.Builder builder);

  /**
   * {@return a runner of ranks that are threads and may be lost, those that throw a {@link Lost};
   * by default of {@link LocalRanks}}
   */
  protected RankRunner runner() {
    return new LocalRunner();
  }

  private void run(int ranks, LocalRanks.RankTask task) {
    runner().run(ranks, this::options, task);
  }

  private static float[] values(int number, int round) {
    float[] values = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      values[i] = 3 * number + i + round;
    }
    return values;
  }

  /** Averages, and checks the result among ranks with the given numbers. */
  private static void average(
      GradientSync sync, DeviceBuffer buffer, int own, int[] all, int round) {
    buffer.copyFrom(values(own, round));
    sync.average(buffer);
    float[] sum = new float[COUNT];
    for (int number : all) {
      float[] values = values(number, round);
      for (int i = 0; i < COUNT; i++) {
        sum[i] += values[i];
      }
    }
    for (int i = 0; i < COUNT; i++) {
      sum[i] /= all.length;
    }
    float[] actual = new float[COUNT];
    buffer.copyTo(actual);
    assertArrayEquals(sum, actual, 0, "rank=" + sync.rank());
  }

  /** Averages until a call fails; a rank that is to be lost fails itself after a few. */
  private static void averageUntilLost(
      GradientSync sync, DeviceBuffer buffer, int own, int[] all, boolean fails) {
    try {
      for (int round = 0; !fails || round < 2; round++) {
        average(sync, buffer, own, all, round);
      }
    } catch (RankLostException e) {
      if (!fails) {
        return;
      }
    }
    throw new Lost(own); // also if another one was lost before
  }

  @ParameterizedTest
  @CsvSource({"4,1", "4,0", "3,2", "2,0", "2,1", "5,0 1", "5,3 1", "4,0 1 2"})
  void theOthersAverageInTheSameBuffers(int ranks, String lost) {
    List<Integer> gone = Arrays.stream(lost.split(" ")).map(Integer::valueOf).toList();
    int[] left = IntStream.range(0, ranks).filter(rank -> !gone.contains(rank)).toArray();
    AtomicInteger went = new AtomicInteger();
    run(
        ranks,
        sync -> {
          int own = sync.rank();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT)) {
            int[] all = IntStream.range(0, ranks).toArray();
            averageUntilLost(sync, buffer, own, all, gone.contains(own));
            try (GradientSync next = sync.survivors()) {
              assertEquals(left.length, next.size());
              assertEquals(own, left[next.rank()]);
              assertSame(sync.device(), next.device());
              for (int round = 0; round < 5; round++) {
                average(next, buffer, own, left, round);
              }
              assertEquals(left.length, next.communicator().sum(1));
              went.incrementAndGet();
            }
            assertThrows(IllegalStateException.class, sync::survivors);
          }
        });
    assertEquals(left.length, went.get());
  }

  @Test
  void ranksAreLostOneAfterAnother() {
    run(
        6,
        sync -> {
          int own = sync.rank();
          GradientSync now = sync;
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT)) {
            for (int round = 0; now.size() > 1; round++) {
              int[] left = IntStream.range(round, 6).toArray();
              averageUntilLost(now, buffer, own, left, own == round);
              now = now.survivors();
            }
            average(now, buffer, own, new int[] {5}, 1);
          } finally {
            now.close();
          }
        });
  }

  @ParameterizedTest
  @CsvSource({"0", "1", "3"})
  void aRankIsLostWhileTheOthersAgree(int second) {
    run(
        4,
        sync -> {
          int own = sync.rank();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT)) {
            averageUntilLost(sync, buffer, own, new int[] {0, 1, 2, 3}, own == 2);
            if (own == second) {
              Thread.sleep(300); // the others wait for this one
              throw new Lost(own);
            }
            int[] left = IntStream.range(0, 4).filter(r -> r != 2 && r != second).toArray();
            try (GradientSync next = sync.survivors()) {
              average(next, buffer, own, left, 1);
            }
          }
        });
  }

  @Test
  void aRankLeavesOnPurpose() {
    run(
        3,
        sync -> {
          int own = sync.rank();
          if (own == 1) {
            return;
          }
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT);
              GradientSync next = sync.survivors()) {
            average(next, buffer, own, new int[] {0, 2}, 1);
          }
        });
  }

  @Test
  void callsOfRanksThatDoNotKnowYetEnd() {
    run(
        3,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT)) {
            if (sync.rank() == 2) {
              return;
            }
            if (sync.rank() == 0) {
              assertThrows(RankLostException.class, () -> sync.average(buffer));
            }
            try (GradientSync next = sync.survivors()) {
              assertEquals(2, next.size());
            }
          }
        });
  }

  @Test
  void aPartGoesOn() {
    run(
        4,
        sync -> {
          GradientSync part = sync.split(sync.rank() / 2, sync.rank());
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT)) {
            if (sync.rank() == 3) {
              part.close();
            } else if (sync.rank() == 2) {
              part = part.survivors();
              average(part, buffer, 0, new int[] {0}, 1);
            } else {
              average(part, buffer, part.rank(), new int[] {0, 1}, 1);
            }
            average(sync, buffer, sync.rank(), new int[] {0, 1, 2, 3}, 2);
          }
        });
  }

  @Test
  void ranksThatDoNotComeAreLeftBehind() {
    AtomicInteger behind = new AtomicInteger();
    runner()
        .run(
            4,
            builder -> options(builder).timeout(Duration.ofSeconds(1)),
            sync -> {
              int own = sync.rank();
              if (own >= 2) {
                Thread.sleep(3_000);
                RankLostException e = assertThrows(RankLostException.class, sync::survivors);
                assertTrue(e.getMessage().contains("go on without this one"), e.getMessage());
                behind.incrementAndGet();
                return;
              }
              try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT);
                  GradientSync next = sync.survivors()) {
                average(next, buffer, own, new int[] {0, 1}, 1);
              }
            });
    assertEquals(2, behind.get());
  }

  @Test
  void tooFewDoNotGoOn() {
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                runner()
                    .run(
                        2,
                        builder -> options(builder).timeout(Duration.ofMillis(700)),
                        sync -> {
                          if (sync.rank() == 1) {
                            sync.survivors();
                          } else {
                            Thread.sleep(5_000);
                          }
                        }));
    assertTrue(e.getMessage().contains("did not come to go on together"), e.getMessage());
  }

  @Test
  void aMismatchIsNoLoss() {
    run(
        2,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 2 + sync.rank())) {
            assertThrows(MismatchedCallException.class, () -> sync.average(buffer));
          }
          try (GradientSync next = sync.survivors()) {
            assertEquals(2, next.size());
            assertEquals(2, next.communicator().sum(1));
          }
        });
  }
}
