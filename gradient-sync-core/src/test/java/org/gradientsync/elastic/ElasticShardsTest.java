package org.gradientsync.elastic;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientBuckets.Piece;
import org.gradientsync.GradientBuckets.Shard;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An elastic training whose optimizer is in shards, of which one is lost with its rank. */
@Timeout(60)
class ElasticShardsTest {
  private static final int COUNT = 701; // of each parameter
  private static final int PARAMETERS = 3;
  private static final int STEPS = 24;
  private static final int COMMIT = 5;

  /** Momentum in shards; weights and moments of all ranks are gathered at times. */
  private static final class Sharded implements ElasticLoop, AutoCloseable {
    final DeviceBuffer weights; // whole, of the last commit
    final DeviceBuffer moments;
    final TreeMap<Long, Integer> sizes = new TreeMap<>();
    private byte[] done = new byte[1]; // steps; saved and loaded as it is
    private final long failsAt; // or -1
    private GradientSync sync;
    private GradientBuckets buckets;
    private List<DeviceBuffer> shares; // the moments of this rank's shards

    Sharded(GradientSync sync, long failsAt) {
      this.failsAt = failsAt;
      weights = ElasticLoop.hostBuffer(DataType.FLOAT32, PARAMETERS * COUNT);
      moments = ElasticLoop.hostBuffer(DataType.FLOAT32, PARAMETERS * COUNT);
    }

    @Override
    public void begin(GradientSync ranks) {
      sync = ranks;
      buckets =
          GradientBuckets.builder(
                  sync,
                  IntStream.range(0, PARAMETERS)
                      .mapToObj(i -> new Parameter("p" + i, DataType.FLOAT32, COUNT))
                      .toList())
              .bucketBytes(4_000)
              .firstBucketBytes(4_000)
              .sharded()
              .build();
      shares =
          buckets.shards().stream()
              .map(shard -> sync.allocate(DataType.FLOAT32, shard.weight().count()))
              .toList();
    }

    @Override
    public void compute(long step) {
      assertEquals(step, done[0], "steps done");
      sizes.tailMap(step, true).clear();
      sizes.put(step, sync.size());
      for (int p = PARAMETERS - 1; p >= 0; p--) {
        for (int i = 0; i < COUNT; i++) {
          float weight = buckets.weight(p).floats().get(i);
          float value =
              UndisturbedRun.gradient(weight, step, sync.rank(), sync.size(), p * COUNT + i);
          buckets.gradient(p).floats().put(i, value);
        }
        buckets.ready(p);
      }
      if (step == failsAt) {
        throw new IllegalStateException("lost");
      }
      buckets.finish(
          (gradient, weight, shard) -> {
            DeviceBuffer share = shares.get(shard);
            for (int i = 0; i < share.count(); i++) {
              float moment = 0.875f * share.floats().get(i) + gradient.floats().get(i);
              share.floats().put(i, moment);
              weight.floats().put(i, weight.floats().get(i) - 0.5f * moment);
            }
          });
    }

    @Override
    public void update(long step) {
      done[0]++; // each bucket's update came with its average: a failed step leaves it half done
    }

    @Override
    public byte[] save() {
      return done;
    }

    @Override
    public void load(byte[] saved) {
      done = saved;
    }

    @Override
    public void end() {
      shares.forEach(DeviceBuffer::close);
      buckets.close();
    }

    @Override
    public List<DeviceBuffer> state() {
      return List.of(weights, moments);
    }

    @Override
    public void gather() {
      for (int p = 0; p < PARAMETERS; p++) {
        for (int i = 0; i < COUNT; i++) {
          weights.floats().put(p * COUNT + i, buckets.weight(p).floats().get(i));
        }
      }
      for (int root = 0; root < sync.size(); root++) {
        buckets.gatherState(
            shares,
            root,
            (values, p) -> {
              for (int i = 0; i < COUNT; i++) {
                moments.floats().put(p * COUNT + i, values.floats().get(i));
              }
            });
      }
    }

    @Override
    public void scatter() {
      for (int p = 0; p < PARAMETERS; p++) {
        for (int i = 0; i < COUNT; i++) {
          buckets.weight(p).floats().put(i, weights.floats().get(p * COUNT + i));
        }
      }
      for (int s = 0; s < shares.size(); s++) {
        Shard shard = buckets.shards().get(s);
        for (Piece piece : shard.pieces()) {
          for (int i = 0; i < piece.count(); i++) {
            int at = (int) (piece.parameter() * COUNT + piece.parameterOffset() + i);
            shares.get(s).floats().put((int) piece.shardOffset() + i, moments.floats().get(at));
          }
        }
      }
    }

    @Override
    public void close() {
      weights.close();
      moments.close();
    }
  }

  @ParameterizedTest
  @CsvSource({"1,12", "0,3", "2,23"})
  void allGoBackToTheNewestCopy(int lost, int at) {
    Map<Integer, float[]> results = new ConcurrentHashMap<>();
    Map<Long, Integer> sizes = new ConcurrentHashMap<>();
    LocalRanks.run(
        3,
        sync -> {
          int own = sync.rank();
          try (Sharded loop = new Sharded(sync, own == lost ? at : -1);
              ElasticTraining training =
                  ElasticTraining.builder(sync, loop).commitEvery(COMMIT).build()) {
            training.run(0, STEPS);
            float[] weights = new float[PARAMETERS * COUNT];
            loop.weights.copyTo(weights);
            results.put(own, weights);
            loop.sizes.forEach((step, size) -> sizes.merge(step, size, Math::min));
          }
        });
    assertEquals(2, results.size());
    for (long step = 0; step < STEPS; step++) {
      assertEquals(step < at / COMMIT * COMMIT ? 3 : 2, sizes.get(step), "step=" + step);
    }
    results
        .values()
        .forEach(
            weights ->
                assertArrayEquals(UndisturbedRun.weights(sizes, PARAMETERS * COUNT), weights, 0));
  }
}
