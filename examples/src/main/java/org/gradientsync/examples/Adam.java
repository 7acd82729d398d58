package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.elastic.ElasticLoop;
import org.gradientsync.spi.Resources;

/**
 * Adam (Kingma and Ba, 2015) on one rank: the moments of all weights, or of this rank's shards
 * only. All elements are updated alike, so both give the same bits.
 */
final class Adam implements AutoCloseable {
  static final double MEAN_DECAY = 0.9;
  static final double SQUARE_DECAY = 0.999;
  static final double EPSILON = 1e-8;

  private final GradientSync sync;
  private final MlpEngine engine;
  private GradientBuckets buckets;
  private final boolean sharded;
  private final double rate;
  private final List<AdamPart> parts = new ArrayList<>();
  private final List<DeviceBuffer> means = new ArrayList<>();
  private final List<DeviceBuffer> squares = new ArrayList<>();
  private final Resources resources = new Resources();
  private List<DeviceBuffer> whole; // of all layers, means first; made when it is needed
  private double stepRate;
  private double correction;

  /**
   * Allocates moments of zero.
   *
   * @param engine computes the updates, with the weights of the buckets if these are sharded
   * @param buckets may be null without shards, until {@link #use}
   * @param rate the learning rate
   */
  Adam(GradientSync sync, MlpEngine engine, GradientBuckets buckets, boolean sharded, double rate) {
    this.sync = sync;
    this.engine = engine;
    this.sharded = sharded;
    this.rate = rate;
    try {
      int count = sharded ? buckets.bucketCount() : engine.weights().size();
      for (int i = 0; i < count; i++) {
        DeviceBuffer weight = sharded ? buckets.shards().get(i).weight() : engine.weights().get(i);
        means.add(resources.add(sync.allocate(weight.type(), weight.count())));
        squares.add(resources.add(sync.allocate(weight.type(), weight.count())));
      }
      if (buckets != null) {
        use(buckets);
      }
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /** Updates with the gradients of these buckets from now on. */
  void use(GradientBuckets newBuckets) {
    buckets = newBuckets;
    parts.clear();
    for (int i = 0; i < means.size(); i++) {
      DeviceBuffer weight = sharded ? buckets.shards().get(i).weight() : engine.weights().get(i);
      DeviceBuffer gradient = sharded ? buckets.shards().get(i).gradient() : buckets.gradient(i);
      parts.add(new AdamPart(i, sharded, weight, gradient, means.get(i), squares.get(i)));
    }
  }

  boolean isSharded() {
    return sharded;
  }

  /** Returns the number of parts: layers, or shards. */
  int parts() {
    return parts.size();
  }

  /** Returns the size of this rank's moments. */
  long bytes() {
    return means.stream().mapToLong(DeviceBuffer::sizeInBytes).sum() * 2;
  }

  /** Returns the size of the moments of all weights. */
  long bytesOfAll() {
    return engine.parameters().stream()
        .mapToLong(p -> 2 * p.count() * p.type().sizeInBytes())
        .sum();
  }

  /** Begins a step's updates. Steps are numbered from 0. */
  void begin(long step) {
    // Math.pow may have other bits on other machines.
    stepRate = rate / (1 - StrictMath.pow(MEAN_DECAY, step + 1));
    correction = 1 / Math.sqrt(1 - StrictMath.pow(SQUARE_DECAY, step + 1));
  }

  /** Updates a layer or a shard. */
  void update(int part) {
    engine.adam(parts.get(part), stepRate, correction);
  }

  /**
   * Returns the moments of all layers on rank 0, means first, for checkpoints; without shards this
   * rank's own. With shards they are in host memory: {@link #gather} reads them from all ranks,
   * {@link #scatter} writes them there. Elsewhere the list is empty if sharded.
   */
  List<DeviceBuffer> whole() {
    if (whole == null) {
      whole = new ArrayList<>();
      if (!sharded) {
        whole.addAll(means);
        whole.addAll(squares);
      } else if (sync.rank() == 0) {
        for (int i = 0; i < 2 * buckets.size(); i++) {
          Parameter layer = engine.parameters().get(i % buckets.size());
          whole.add(resources.add(ElasticLoop.hostBuffer(layer.type(), layer.count())));
        }
      }
    }
    return whole;
  }

  /** Gathers all ranks' moments in {@link #whole}. Collective. */
  void gather() {
    if (sharded) {
      List<DeviceBuffer> all = whole();
      buckets.gatherState(means, 0, (values, i) -> Weights.copy(values, all.get(i)));
      buckets.gatherState(
          squares, 0, (values, i) -> Weights.copy(values, all.get(buckets.size() + i)));
    }
  }

  /** Gives all ranks the moments that {@link #whole} has on rank 0. Collective. */
  void scatter() {
    List<DeviceBuffer> all = whole();
    if (sharded) {
      buckets.scatterState(means, 0, (values, i) -> Weights.copy(all.get(i), values));
      buckets.scatterState(
          squares, 0, (values, i) -> Weights.copy(all.get(buckets.size() + i), values));
    } else {
      all.forEach(layer -> sync.broadcast(layer, 0));
    }
  }

  @Override
  public void close() {
    resources.close();
  }
}
