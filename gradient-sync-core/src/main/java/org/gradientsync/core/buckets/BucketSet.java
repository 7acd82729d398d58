package org.gradientsync.core.buckets;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.BucketHook;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;

/**
 * The buckets of a model in one layout: their memory, and each gradient's view into it. In reverse
 * order of the parameters, the first one small, and laid out anew once: Li et al., "PyTorch
 * Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
 */
public final class BucketSet implements AutoCloseable {
  final BucketLayout layout;
  final Bucket[] buckets;

  /** Null in sharded buckets, unless parameters may be skipped, and without buckets. */
  final StepFlags flags;

  /** What averages the flags if they are not in the last bucket; or null. */
  final Bucket flagBucket;

  /** The buckets, and the one of flags if there is one. */
  final List<Bucket> all = new ArrayList<>();

  private final List<Parameter> parameters;
  private final DeviceBuffer[] gradients;
  private final DeviceBuffer[] weights; // or null
  private final DeviceBuffer beforeFlags; // the last bucket without the flags; or null
  private final Resources resources = new Resources();

  /**
   * Allocates the buckets. Not collective.
   *
   * @param number the number of this set among the sync's bucket sets, from 1
   * @param hooks what averages the buckets, or null
   */
  BucketSet(
      BucketsBuilder options,
      BucketLayout layout,
      Stream compute,
      BucketStreams streams,
      int number,
      BucketHooks hooks) {
    BucketSync sync = options.sync;
    boolean sharded = options.sharded;
    this.layout = layout;
    parameters = options.parameters;
    buckets = new Bucket[layout.buckets.size()];
    gradients = new DeviceBuffer[parameters.size()];
    weights = sharded ? new DeviceBuffer[parameters.size()] : null;
    try {
      for (int i = 0; i < buckets.length; i++) {
        Stream stream = streams.of(i, buckets.length);
        BucketLayout.Place place = layout.buckets.get(i);
        long count = place.count / sync.size();
        List<GradientBuckets.Piece> pieces =
            sharded ? layout.pieces(i, sync.rank() * count, count, parameters) : null;
        buckets[i] =
            resources.add(new Bucket(sync, origin(options, i), place, compute, stream, pieces));
        name(i, number, options.uneven != null);
        if (hooks != null && buckets[i].parameters.length > 0) {
          buckets[i].hooked =
              resources.add(
                  new HookedBucket(
                      hooks, i, origin(options, i), buckets[i].averaged, stream, parts(i)));
        }
      }
      for (int i = 0; i < gradients.length; i++) {
        gradients[i] = view(bucketOf(i).flat, i);
        if (sharded) {
          weights[i] = view(bucketOf(i).shard.weights, i);
        }
      }
      flagBucket =
          options.hasFlagBucket() ? resources.add(flagBucket(options, compute, streams)) : null;
      all.addAll(Arrays.asList(buckets));
      if (flagBucket != null) {
        all.add(flagBucket);
      }
      beforeFlags = layout.flagOffset < 0 ? null : last().flat.slice(0, layout.flagOffset);
      DeviceBuffer place =
          flagBucket != null
              ? flagBucket.flat.slice(0, options.flags())
              : beforeFlags == null ? null : last().flat.slice(layout.flagOffset, options.flags());
      flags =
          place == null
              ? null
              : resources.add(new StepFlags(sync.backend(), place, compute, sync.size()));
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /**
   * Names a bucket for errors and for the comparison of calls: its index, its first and its last
   * parameter, preceded by the number of the bucket set unless that is 1, and by whether steps may
   * be uneven.
   */
  private void name(int bucket, int number, boolean uneven) {
    int[] members = buckets[bucket].parameters;
    String first = members.length == 0 ? "" : parameters.get(members[0]).name();
    String last = members.length == 0 ? "" : parameters.get(members[members.length - 1]).name();
    String name =
        (number > 1 ? "buckets " + number + ", " : "")
            + (uneven ? "uneven " : "")
            + ("bucket " + bucket + ": " + first)
            + (members.length > 1 ? " to " + last : "");
    AbstractDeviceBuffer averaged = (AbstractDeviceBuffer) buckets[bucket].averaged;
    BucketLayout places = layout; // so that the lambda does not keep this set's memory alive
    List<Parameter> names = parameters;
    averaged.named(name).elementsNamed(element -> places.nameOf(bucket, element, names));
    if (buckets[bucket].shard != null) {
      buckets[bucket].shard.gathered.named("weights of " + name);
    }
  }

  private static Origin origin(BucketsBuilder options, int bucket) {
    if (options.uneven != null) {
      return Origin.UNEVEN_BUCKET;
    }
    return bucket == 0 ? Origin.FIRST_BUCKET : Origin.LATER_BUCKET;
  }

  private Bucket flagBucket(BucketsBuilder options, Stream compute, BucketStreams streams) {
    BucketLayout.Place place = new BucketLayout.Place(DataType.FLOAT32);
    place.add(options.flags());
    Bucket bucket =
        new Bucket(
            options.sync,
            origin(options, buckets.length),
            place,
            compute,
            streams.of(buckets.length - 1, buckets.length),
            null);
    ((AbstractDeviceBuffer) bucket.averaged).named("flags of buckets");
    return bucket;
  }

  private List<BucketHook.Part> parts(int bucket) {
    return Arrays.stream(buckets[bucket].parameters)
        .mapToObj(i -> new BucketHook.Part(i, parameters.get(i), view(buckets[bucket].averaged, i)))
        .toList();
  }

  Bucket last() {
    return buckets[buckets.length - 1];
  }

  private DeviceBuffer view(DeviceBuffer bucket, int parameter) {
    return bucket.slice(layout.offsetOf[parameter], parameters.get(parameter).count());
  }

  /**
   * This rank's averages of a bucket: its shard, or all; zeros between parameters, and no flags.
   */
  DeviceBuffer averages(int bucket) {
    BucketShard shard = buckets[bucket].shard;
    return shard != null
        ? shard.own.gradient()
        : bucket == buckets.length - 1 && beforeFlags != null ? beforeFlags : buckets[bucket].flat;
  }

  /** The view of a parameter's gradient: a new one if the caller has closed the last one. */
  DeviceBuffer gradient(int parameter) {
    return open(gradients, bucketOf(parameter).flat, parameter);
  }

  /** The view of a parameter's weights, likewise. Only if sharded. */
  DeviceBuffer weight(int parameter) {
    return open(weights, bucketOf(parameter).shard.weights, parameter);
  }

  private DeviceBuffer open(DeviceBuffer[] views, DeviceBuffer bucket, int parameter) {
    if (views[parameter].isClosed() && !bucket.isClosed()) {
      views[parameter] = view(bucket, parameter);
    }
    return views[parameter];
  }

  void beginStep() {
    for (Bucket bucket : buckets) {
      bucket.beginStep();
    }
  }

  /** Fills gradients with zeros, from a bucket on. */
  void fillZero(int first) {
    for (int i = first; i < buckets.length; i++) {
      buckets[i].flat.fillZero();
    }
  }

  /** Drops all observations. No average may be running. */
  void forgetObservations() {
    for (Bucket bucket : buckets) {
      if (bucket.observation != null) {
        bucket.observation.forget();
        bucket.observation = null;
      }
    }
  }

  Bucket bucketOf(int parameter) {
    return buckets[layout.bucketOf[parameter]];
  }

  @Override
  public void close() {
    resources.close();
  }
}
