package org.gradientsync.elastic;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How trainings of ranks that are threads go on. */
@Timeout(60)
class ElasticTrainingTest {
  private static final int COUNT = 1_003;
  private static final int STEPS = 40;

  /** A rank's own failure. */
  private static final class Lost extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  /** Where a rank fails: the half of a step, or the n-th change of the ranks. */
  private enum Place {
    BEFORE_AVERAGE,
    AFTER_AVERAGE,
    AFTER_UPDATE,
    IN_BEGIN,
    IN_END
  }

  private record Failure(Place place, long step) {}

  /** Gradient descent with momentum. */
  private static class Momentum implements ElasticLoop, AutoCloseable {
    final DeviceBuffer weights;
    final DeviceBuffer moments;
    final DeviceBuffer gradients;
    final TreeMap<Long, Integer> sizes = new TreeMap<>(); // from a step on
    private final Failure failure; // or null
    private Runnable end = () -> {};
    private GradientSync sync;
    private long step;
    private int begins;

    Momentum(GradientSync sync, Failure failure) {
      this.failure = failure;
      weights = sync.allocate(DataType.FLOAT32, COUNT);
      moments = sync.allocate(DataType.FLOAT32, COUNT);
      gradients = sync.allocate(DataType.FLOAT32, COUNT);
    }

    private void fail(Place place, long number) {
      if (failure != null && failure.place() == place && failure.step() == number) {
        throw new Lost();
      }
    }

    @Override
    public void begin(GradientSync newSync) {
      sync = newSync;
      fail(Place.IN_BEGIN, begins++);
    }

    @Override
    public void compute(long now) {
      step = now;
      sizes.tailMap(now, true).clear();
      sizes.put(now, sync.size());
      fail(Place.BEFORE_AVERAGE, now);
      FloatBuffer own = gradients.floats();
      FloatBuffer all = weights.floats();
      for (int i = 0; i < COUNT; i++) {
        own.put(i, UndisturbedRun.gradient(all.get(i), now, sync.rank(), sync.size(), i));
      }
      sync.average(gradients);
      fail(Place.AFTER_AVERAGE, now);
    }

    @Override
    public void update(long now) {
      assertEquals(step, now);
      update(weights, moments, gradients);
      fail(Place.AFTER_UPDATE, now);
    }

    static void update(DeviceBuffer weights, DeviceBuffer moments, DeviceBuffer gradients) {
      FloatBuffer all = weights.floats();
      FloatBuffer means = moments.floats();
      FloatBuffer averages = gradients.floats();
      for (int i = 0; i < COUNT; i++) {
        float moment = 0.875f * means.get(i) + averages.get(i);
        means.put(i, moment);
        all.put(i, all.get(i) - 0.5f * moment);
      }
    }

    @Override
    public void end() {
      end.run();
      fail(Place.IN_END, begins);
    }

    @Override
    public List<DeviceBuffer> state() {
      return List.of(weights, moments);
    }

    float[] result() {
      float[] values = new float[COUNT];
      weights.copyTo(values);
      return values;
    }

    @Override
    public void close() {
      weights.close();
      moments.close();
      gradients.close();
    }
  }

  /** Trains, and checks the weights of the ranks that are left. Returns how many those are. */
  private static int train(int ranks, Map<Integer, Failure> failures) {
    Map<Integer, float[]> results = new ConcurrentHashMap<>();
    Map<Integer, Map<Long, Integer>> sizes = new ConcurrentHashMap<>();
    try {
      LocalRanks.run(
          ranks,
          sync -> {
            int own = sync.rank();
            try (Momentum loop = new Momentum(sync, failures.get(own));
                ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
              assertTrue(training.run(0, STEPS));
              results.put(own, loop.result());
              sizes.put(own, Map.copyOf(loop.sizes));
            }
          });
    } catch (GradientSyncException e) {
      if (!(e.getCause() instanceof Lost)) {
        throw e; // otherwise a rank has failed after the last step, when nobody needed it
      }
    }
    assertFalse(results.isEmpty());
    TreeMap<Long, Integer> history = new TreeMap<>();
    for (long step = 0; step < STEPS; step++) { // a rank that got the state has not made each step
      int size = Integer.MAX_VALUE;
      for (Map<Long, Integer> own : sizes.values()) {
        size = Math.min(size, own.getOrDefault(step, Integer.MAX_VALUE));
      }
      history.put(step, size);
    }
    float[] expected = UndisturbedRun.weights(history, COUNT);
    results.forEach(
        (rank, weights) -> assertArrayEquals(expected, weights, 0, "rank=" + rank + history));
    return results.size();
  }

  @Test
  void anUndisturbedTrainingIsPlain() {
    assertEquals(3, train(3, Map.of()));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3})
  void aLostRankIsLeftOut(int rank) {
    for (Place place : List.of(Place.BEFORE_AVERAGE, Place.AFTER_AVERAGE, Place.AFTER_UPDATE)) {
      assertEquals(3, train(4, Map.of(rank, new Failure(place, 17))));
    }
  }

  @Test
  void ranksAreLostAtRandom() {
    Random random = new Random(5);
    Place[] places = Place.values();
    for (int run = 0; run < 100; run++) {
      int ranks = 2 + random.nextInt(4);
      Map<Integer, Failure> failures = new TreeMap<>();
      int lost = 1 + random.nextInt(ranks - 1);
      long step = random.nextInt(STEPS);
      for (int i = 0; i < lost; i++) {
        Place place = places[random.nextInt(places.length)];
        boolean together = random.nextBoolean();
        long at =
            place == Place.IN_BEGIN || place == Place.IN_END
                ? random.nextInt(3)
                : together ? step : random.nextInt(STEPS);
        failures.put(random.nextInt(ranks), new Failure(place, at));
      }
      int left = train(ranks, failures);
      assertTrue(left >= ranks - failures.size(), failures::toString);
    }
  }

  @Test
  void tooFewRanksEndTheTraining() {
    GradientSyncException e =
        assertThrows(
            GradientSyncException.class,
            () ->
                LocalRanks.run(
                    3,
                    sync -> {
                      Failure failure =
                          sync.rank() == 0 ? null : new Failure(Place.BEFORE_AVERAGE, 5);
                      try (Momentum loop = new Momentum(sync, failure);
                          ElasticTraining training =
                              ElasticTraining.builder(sync, loop)
                                  .minRanks(2)
                                  .waitForRanks(Duration.ofMillis(100))
                                  .build()) {
                        training.run(0, STEPS);
                      }
                    }));
    assertTrue(e.getMessage().contains("too few ranks are left"), e::toString);
  }

  /** As after a signal to the job, while too few ranks wait for another one. */
  @Test
  void ranksThatWaitForOthersLeaveTogether() {
    Map<Integer, float[]> results = new ConcurrentHashMap<>();
    LocalRanks.run(
        3,
        sync -> {
          int own = sync.rank();
          Failure failure = own == 1 ? new Failure(Place.BEFORE_AVERAGE, 5) : null;
          try (Momentum loop = new Momentum(sync, failure);
              ElasticTraining training =
                  ElasticTraining.builder(sync, loop)
                      .minRanks(3)
                      .waitForRanks(Duration.ofMinutes(10))
                      .build()) {
            loop.end = training::leave; // of ranks 0 and 2, when they lose rank 1
            assertFalse(training.run(0, STEPS));
            assertTrue(training.haveAllLeft());
            assertEquals(1, loop.begins); // never with too few ranks
            results.put(own, loop.result());
          }
        });
    TreeMap<Long, Integer> history = new TreeMap<>();
    for (long step = 0; step < 5; step++) {
      history.put(step, 3);
    }
    float[] expected = UndisturbedRun.weights(history, COUNT);
    assertEquals(Set.of(0, 2), results.keySet());
    results.forEach((rank, weights) -> assertArrayEquals(expected, weights, 0, "rank=" + rank));
  }

  @ParameterizedTest
  @ValueSource(longs = {0, STEPS})
  void aLossAfterTheLastStepEndsNothing(long commitEvery) {
    Failure failure = new Failure(Place.AFTER_UPDATE, STEPS - 1);
    AtomicInteger done = new AtomicInteger();
    LocalRanks.run(
        3,
        sync -> {
          try (Momentum loop = new Momentum(sync, sync.rank() == 1 ? failure : null);
              ElasticTraining training =
                  ElasticTraining.builder(sync, loop)
                      .minRanks(3)
                      .waitForRanks(Duration.ofMillis(100))
                      .commitEvery(commitEvery)
                      .build()) {
            done.addAndGet(training.run(0, STEPS) ? 1 : 0);
          }
        });
    assertEquals(2, done.get());
  }

  @Test
  void aTrainingRunsInParts() {
    AtomicInteger open = new AtomicInteger();
    LocalRanks.run(
        2,
        sync -> {
          try (Momentum loop =
                  new Momentum(sync, null) {
                    @Override
                    public void begin(GradientSync ranks) {
                      super.begin(ranks);
                      open.incrementAndGet();
                    }

                    @Override
                    public void end() {
                      super.end();
                      open.decrementAndGet();
                    }
                  };
              ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
            assertTrue(training.run(0, STEPS / 2));
            assertTrue(training.run(STEPS / 2, STEPS));
          }
        });
    assertEquals(0, open.get(), "each begin needs an end");
  }

  /** A loop whose first begin is cut short has nothing yet that its end could close. */
  @Test
  void anEndThatMissesWhatBeginHasNotMadeEndsNothing() {
    AtomicInteger ends = new AtomicInteger();
    List<Integer> sizes = new ArrayList<>();
    LocalRanks.run(
        3,
        sync -> {
          Failure failure = sync.rank() == 1 ? new Failure(Place.IN_BEGIN, 0) : null;
          try (Momentum loop =
                  new Momentum(sync, failure) {
                    private DeviceBuffer made;

                    @Override
                    public void begin(GradientSync ranks) {
                      super.begin(ranks);
                      ranks.barrier(); // a rank is lost here
                      made = ranks.allocate(DataType.FLOAT32, COUNT);
                    }

                    @Override
                    public void end() {
                      ends.addAndGet(failure == null ? 1 : 0);
                      made.close();
                    }
                  };
              ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
            assertTrue(training.run(0, STEPS));
            synchronized (sizes) {
              sizes.add(training.sync().size());
            }
          }
        });
    assertEquals(List.of(2, 2), sizes);
    assertEquals(4, ends.get()); // of each after the loss and at the end
  }

  @Test
  void aRankLeavesAfterAStep() {
    AtomicInteger left = new AtomicInteger();
    List<float[]> results = new ArrayList<>();
    LocalRanks.run(
        3,
        sync -> {
          boolean leaves = sync.rank() == 0;
          ElasticTraining[] own = new ElasticTraining[1];
          try (Momentum loop =
                  new Momentum(sync, null) {
                    @Override
                    public void update(long step) {
                      super.update(step);
                      if (leaves && step == 9) {
                        own[0].leave();
                      }
                    }
                  };
              ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
            own[0] = training;
            if (!training.run(0, STEPS)) {
              left.incrementAndGet();
              return;
            }
            assertEquals(2, training.sync().size());
            assertEquals(1, training.changes());
            synchronized (results) {
              results.add(loop.result());
            }
          }
        });
    assertEquals(1, left.get());
    TreeMap<Long, Integer> history = new TreeMap<>();
    for (long step = 0; step < STEPS; step++) {
      history.put(step, step < 10 ? 3 : 2);
    }
    assertEquals(2, results.size());
    results.forEach(
        weights -> assertArrayEquals(UndisturbedRun.weights(history, COUNT), weights, 0));
  }

  @Test
  void aNewTrainingBeginsWithTheNewestState() {
    LocalRanks.run(
        3,
        sync -> {
          try (Momentum loop = new Momentum(sync, null);
              ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
            boolean resumes = sync.rank() == 1;
            if (resumes) {
              float[] three = new float[COUNT];
              Arrays.fill(three, 3);
              loop.weights.copyFrom(three);
            }
            training.run(resumes ? STEPS : 0, STEPS);
            float[] expected = new float[COUNT];
            Arrays.fill(expected, 3);
            assertArrayEquals(expected, loop.result());
          }
        });
  }
}
