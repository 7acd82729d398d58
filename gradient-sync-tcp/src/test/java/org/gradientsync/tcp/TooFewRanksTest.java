package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.core.sync.Admission;
import org.gradientsync.elastic.ElasticLoop;
import org.gradientsync.elastic.ElasticTraining;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A training that loses ranks just after it has let one in, so that too few are left. */
class TooFewRanksTest {
  private static final int RANKS = 3;
  private static final int LEAST = 2;
  private static final int LOSS = 5; // the step of the first one
  private static final int STEPS = 10;
  private static final Duration LIMIT = Duration.ofSeconds(30);

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private int port;

  /** Where a rank fails. */
  private enum Place {
    NOWHERE,
    IN_A_STEP,
    IN_LOAD,
    IN_BEGIN,
    IN_STATE_FOR_NEWCOMER,
    IN_THIRD_BEGIN
  }

  private static final class Failure extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  /** Adds the mean of all ranks' numbers, counted from 1. */
  private static final class Loop implements ElasticLoop, AutoCloseable {
    private final Map<Long, Integer> sizes = new TreeMap<>(); // by step
    private final Place place;
    private final DeviceBuffer weight;
    private GradientSync sync;
    private int begins;
    private float mean;
    private float result;

    Loop(GradientSync sync, Place place) {
      this.place = place;
      weight = sync.allocate(DataType.FLOAT32, 1);
    }

    private void failIf(boolean condition) {
      if (condition) {
        throw new Failure();
      }
    }

    @Override
    public void begin(GradientSync ranks) {
      sync = ranks;
      failIf(place == Place.IN_BEGIN);
      begins++;
      failIf(place == Place.IN_THIRD_BEGIN && begins == 3); // after a loss, and a newcomer
    }

    @Override
    public void compute(long step) {
      failIf(place == Place.IN_A_STEP && step == LOSS);
      if (begins == 2 && step == STEPS - 2 && sync.rank() == 0) {
        awaitNewcomer();
      }
      float[] own = {sync.rank() + 1};
      sync.average(own);
      mean = own[0];
      sizes.put(step, sync.size());
    }

    private void awaitNewcomer() {
      while (((Admission) sync).newcomers() == 0 && !Thread.currentThread().isInterrupted()) {
        Thread.yield();
      }
    }

    @Override
    public void update(long step) {
      weight.copyFrom(new float[] {weight() + mean});
    }

    float weight() {
      float[] value = new float[1];
      weight.copyTo(value);
      return value[0];
    }

    @Override
    public void end() {
      // begin makes nothing
    }

    @Override
    public void close() {
      weight.close();
    }

    @Override
    public List<DeviceBuffer> state() {
      failIf(place == Place.IN_STATE_FOR_NEWCOMER && begins == 2); // after a loss
      return List.of(weight);
    }

    @Override
    public void load(byte[] saved) {
      failIf(place == Place.IN_LOAD);
    }
  }

  @BeforeEach
  void choosePort() throws IOException {
    port = Ranks.freePort();
  }

  @AfterEach
  void endThreads() {
    threads.shutdownNow();
  }

  /** Trains as one rank, of which the first one's history says how many there were. */
  private Loop train(int rank, Place place, Duration wait) {
    GradientSync sync =
        ThreadRanks.builder(port, rank, RANKS).timeout(LIMIT).elastic(true).create();
    try (Loop loop = new Loop(sync, place);
        ElasticTraining training =
            ElasticTraining.builder(sync, loop).minRanks(LEAST).waitForRanks(wait).build()) {
      assertTrue(training.run(0, STEPS));
      loop.result = loop.weight();
      return loop;
    }
  }

  private Future<Loop> start(int rank, Place place) {
    return threads.submit(() -> train(rank, place, LIMIT));
  }

  private static void awaitFailure(Future<Loop> rank) {
    Exception e = assertThrows(ExecutionException.class, () -> rank.get(1, TimeUnit.MINUTES));
    assertEquals(Failure.class, e.getCause().getClass(), e::toString);
  }

  /** Returns rank 0's training, which is alone when the other two have failed. */
  private Future<Loop> startAndLoseTwo(Place ofNewcomer, Duration wait) {
    Future<Loop> first = threads.submit(() -> train(0, Place.NOWHERE, wait));
    Future<Loop> second = start(1, Place.IN_THIRD_BEGIN);
    awaitFailure(start(2, Place.IN_A_STEP));
    awaitFailure(start(2, ofNewcomer));
    awaitFailure(second);
    return first;
  }

  @ParameterizedTest
  @EnumSource(names = {"IN_LOAD", "IN_BEGIN"})
  void theOneThatIsLeftWaitsForAnother(Place ofNewcomer) throws Exception {
    Future<Loop> first = startAndLoseTwo(ofNewcomer, LIMIT);
    Thread.sleep(500); // it finds the losses after 200 ms, and would go on alone
    Loop last = start(2, Place.NOWHERE).get(1, TimeUnit.MINUTES);
    Loop whole = first.get(1, TimeUnit.MINUTES);
    float expected = 0;
    for (long step = 0; step < STEPS; step++) {
      int ranks = step < LOSS ? RANKS : LEAST;
      assertEquals(ranks, whole.sizes.get(step), whole.sizes::toString);
      expected += (ranks + 1) / 2f;
    }
    assertEquals(expected, whole.result);
    assertEquals(expected, last.result);
  }

  /** It has made its sync, and not begun to train. */
  @Test
  void aNewcomerEndsIfAllWithTheStateAreLost() throws Exception {
    List<Future<Loop>> firsts =
        List.of(start(0, Place.IN_STATE_FOR_NEWCOMER), start(1, Place.IN_STATE_FOR_NEWCOMER));
    awaitFailure(start(2, Place.IN_A_STEP));
    GradientSync sync = ThreadRanks.builder(port, 2, RANKS).timeout(LIMIT).elastic(true).create();
    firsts.forEach(TooFewRanksTest::awaitFailure);
    try (Loop loop = new Loop(sync, Place.NOWHERE);
        ElasticTraining training = ElasticTraining.builder(sync, loop).minRanks(LEAST).build()) {
      Exception e = assertThrows(RankLostException.class, () -> training.run(0, STEPS));
      assertEquals(
          "no rank has a whole state: rank=0; start again from a checkpoint", e.getMessage());
    }
  }

  @Test
  void theOneThatIsLeftGivesUpIfNobodyComes() {
    Future<Loop> first = startAndLoseTwo(Place.IN_BEGIN, Duration.ofMillis(200));
    Exception e = assertThrows(ExecutionException.class, () -> first.get(1, TimeUnit.MINUTES));
    assertEquals(RankLostException.class, e.getCause().getClass(), e::toString);
    assertEquals(
        "too few ranks are left: ranks=1, minRanks=2, waited=200 ms", e.getCause().getMessage());
  }
}
