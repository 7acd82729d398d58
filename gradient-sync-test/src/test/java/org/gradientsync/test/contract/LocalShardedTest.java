package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs the contract of sharded buckets with ranks as threads. */
class LocalShardedTest extends ShardedContract {
  private static final List<Parameter> LAYERS =
      List.of(
          new Parameter("a", DataType.FLOAT32, 333),
          new Parameter("b", DataType.FLOAT32, 1),
          new Parameter("c", DataType.FLOAT32, 1_025));

  @Override
  protected RankRunner runner() {
    return new LocalRunner(1, 2, 3);
  }

  /** Weights and momentum of each parameter. */
  private record Checkpoint(float[][] weights, float[][] momentum) {
    Checkpoint() {
      this(empty(), empty());
    }

    private static float[][] empty() {
      return LAYERS.stream().map(p -> new float[(int) p.count()]).toArray(float[][]::new);
    }
  }

  @ParameterizedTest
  @CsvSource({"2, 3", "3, 2", "1, 3", "3, 1"})
  void aJobResumesWithAnotherNumberOfRanks(int before, int after) {
    Checkpoint expected = train(1, new Checkpoint(), 0, 6);
    Checkpoint half = train(before, new Checkpoint(), 0, 3);
    Checkpoint actual = train(after, half, 3, 6);
    for (int i = 0; i < LAYERS.size(); i++) {
      assertArrayEquals(expected.weights[i], actual.weights[i], LAYERS.get(i).name());
      assertArrayEquals(expected.momentum[i], actual.momentum[i], LAYERS.get(i).name());
    }
  }

  /** All ranks have the same gradients, small integers, so that every average is exact. */
  private static Checkpoint train(int ranks, Checkpoint from, int first, int end) {
    Checkpoint result = new Checkpoint();
    LocalRanks.run(
        ranks,
        sync -> {
          try (GradientBuckets buckets =
              GradientBuckets.builder(sync, LAYERS).firstBucketBytes(2_000).sharded().build()) {
            List<DeviceBuffer> momentum =
                buckets.shards().stream()
                    .map(shard -> sync.allocate(DataType.FLOAT32, shard.weight().count()))
                    .toList();
            List<DeviceBuffer> weights =
                IntStream.range(0, LAYERS.size()).mapToObj(buckets::weight).toList();
            if (sync.rank() == 0) {
              IntStream.range(0, LAYERS.size())
                  .forEach(i -> weights.get(i).copyFrom(from.weights[i]));
            }
            buckets.broadcast(weights, 0);
            buckets.scatterState(momentum, 0, (values, i) -> values.copyFrom(from.momentum[i]));
            for (int step = first; step < end; step++) {
              for (int i = LAYERS.size() - 1; i >= 0; i--) {
                float[] gradient = new float[(int) LAYERS.get(i).count()];
                for (int k = 0; k < gradient.length; k++) {
                  gradient[k] = (k * 7 + i * 5 + step * 3) % 17 - 8;
                }
                buckets.gradient(i).copyFrom(gradient);
                buckets.ready(i);
              }
              buckets.finish((gradient, weight, k) -> update(gradient, weight, momentum.get(k)));
            }
            buckets.gatherState(momentum, 0, (values, i) -> values.copyTo(result.momentum[i]));
            if (sync.rank() == 0) {
              IntStream.range(0, LAYERS.size())
                  .forEach(i -> weights.get(i).copyTo(result.weights[i]));
            }
          }
        });
    return result;
  }

  private static void update(DeviceBuffer gradient, DeviceBuffer weight, DeviceBuffer momentum) {
    float[] g = new float[(int) gradient.count()];
    float[] w = g.clone();
    float[] m = g.clone();
    gradient.copyTo(g);
    weight.copyTo(w);
    momentum.copyTo(m);
    for (int i = 0; i < g.length; i++) {
      m[i] = 0.9f * m[i] + g[i];
      w[i] -= 0.1f * m[i];
    }
    weight.copyFrom(w);
    momentum.copyFrom(m);
  }
}
