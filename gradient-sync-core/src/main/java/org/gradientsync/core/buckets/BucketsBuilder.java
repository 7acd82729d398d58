package org.gradientsync.core.buckets;

import java.util.List;
import java.util.Objects;
import org.gradientsync.BucketHook;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.LayoutCheck;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;

/** Builds buckets. */
public final class BucketsBuilder extends GradientBuckets.Builder {
  private static final int MAX_BUCKETS = 500; // reducers keep all of them prepared

  final BucketSync sync;
  final List<Parameter> parameters;
  long firstBytes = 1 << 20;
  long bytes = 25 << 20;
  boolean overlap = true;
  GradientBuckets.Uneven uneven; // or null
  boolean sharded;
  GradientBuckets.Missing missing = GradientBuckets.Missing.REFUSE;
  GradientBuckets.Divisor divisor = GradientBuckets.Divisor.ALL_RANKS;
  BucketHook hook; // or null
  Stream compute;

  public BucketsBuilder(BucketSync sync, List<Parameter> parameters) {
    this.sync = Objects.requireNonNull(sync, "sync");
    for (Parameter parameter : Objects.requireNonNull(parameters, "parameters")) {
      Objects.requireNonNull(parameter, "a parameter");
    }
    this.parameters = List.copyOf(parameters);
  }

  @Override
  public BucketsBuilder bucketBytes(long newBytes) {
    bytes = requirePositive(newBytes, "bucketBytes");
    return this;
  }

  @Override
  public BucketsBuilder firstBucketBytes(long newBytes) {
    firstBytes = requirePositive(newBytes, "firstBucketBytes");
    return this;
  }

  @Override
  public BucketsBuilder overlap(boolean newOverlap) {
    overlap = newOverlap;
    return this;
  }

  @Override
  public BucketsBuilder missing(GradientBuckets.Missing newMissing) {
    missing = Objects.requireNonNull(newMissing, "missing");
    return this;
  }

  @Override
  public BucketsBuilder unevenSteps(GradientBuckets.Uneven newUneven) {
    uneven = Objects.requireNonNull(newUneven, "uneven");
    return this;
  }

  @Override
  public BucketsBuilder divisor(GradientBuckets.Divisor newDivisor) {
    divisor = Objects.requireNonNull(newDivisor, "divisor");
    return this;
  }

  @Override
  public BucketsBuilder sharded() {
    sharded = true;
    return this;
  }

  @Override
  public BucketsBuilder hook(BucketHook newHook) {
    hook = Objects.requireNonNull(newHook, "hook");
    return this;
  }

  @Override
  public BucketsBuilder computedOn(Stream stream) {
    compute = Objects.requireNonNull(stream, "stream");
    return this;
  }

  @Override
  public GradientBuckets build() {
    return new GradientBucketsImpl(this);
  }

  /** Throws on all ranks if these options are not those of all ranks. Collective. */
  void requireSame() {
    GroupCommunicator ranks = sync.ownCommunicator();
    ranks.compose(
        Origin.BUILD_BUCKETS,
        () ->
            LayoutCheck.requireSame(
                ranks,
                parameters,
                List.of(
                    "firstBucketBytes",
                    "bucketBytes",
                    "unevenSteps",
                    "unevenSteps(STOP)",
                    "overlap",
                    "sharded",
                    "missing(SKIP)",
                    "divisor(CONTRIBUTING_RANKS)",
                    "hook"),
                firstBytes,
                bytes,
                uneven == null ? 0 : 1,
                uneven == GradientBuckets.Uneven.STOP ? 1 : 0,
                overlap ? 1 : 0,
                sharded ? 1 : 0,
                skipsMissing() ? 1 : 0,
                divisor == GradientBuckets.Divisor.CONTRIBUTING_RANKS ? 1 : 0,
                hook == null ? 0 : 1));
    LayoutCheck.requireDifferentNames(parameters, sync.rank());
    if (sharded && uneven != null) {
      throw new IllegalArgumentException(
          "sharded buckets cannot have uneven steps: rank="
              + sync.rank()
              + "; give all ranks as many steps, or build without sharded()");
    }
    if (sharded && hook != null) {
      throw new IllegalArgumentException(
          "sharded buckets cannot have a hook: rank="
              + sync.rank()
              + "; build without hook() or without sharded()");
    }
  }

  void requireUneven() {
    if (uneven == null) {
      throw new IllegalStateException(
          "built without uneven steps: rank=" + sync.rank() + "; build with unevenSteps()");
    }
  }

  void requireNoUneven() {
    if (uneven != null) {
      throw new IllegalStateException(
          "discard() outside of noSync() with uneven steps, where ranks in join() would still use"
              + " the averages: rank="
              + sync.rank()
              + "; make steps that may be discarded within noSync()");
    }
  }

  boolean skipsMissing() {
    return missing == GradientBuckets.Missing.SKIP;
  }

  /** The number of the {@link StepFlags}. */
  int flags() {
    return StepFlags.FIXED + (skipsMissing() ? parameters.size() : 0);
  }

  /**
   * Whether the flags need an average of their own: each rank gets a part of a sharded bucket, and
   * a hook may do anything with a bucket.
   */
  boolean hasFlagBucket() {
    return (hook != null || sharded && skipsMissing()) && !parameters.isEmpty();
  }

  /**
   * Lays the buckets out.
   *
   * @param order the parameters' indices in the order in which their gradients become ready
   */
  BucketLayout layout(int[] order) {
    BucketLayout layout =
        new BucketLayout(
            parameters,
            order,
            firstBytes,
            bytes,
            sharded || hasFlagBucket() || parameters.isEmpty() && uneven == null ? 0 : flags(),
            sharded ? sync.size() : 1);
    int most = sharded ? MAX_BUCKETS / 2 : MAX_BUCKETS; // two calls for each bucket
    if (layout.buckets.size() > most) {
      throw new IllegalArgumentException(
          "too many buckets: buckets=%s, most=%s, rank=%s; raise bucketBytes"
              .formatted(layout.buckets.size(), most, sync.rank()));
    }
    return layout;
  }

  /** Throws unless there is a buffer for each parameter, with as many elements. */
  void requireModel(List<? extends DeviceBuffer> values) {
    Objects.requireNonNull(values, "values");
    for (int i = 0; i < Math.max(values.size(), parameters.size()); i++) {
      DeviceBuffer value = i < values.size() ? values.get(i) : null;
      Parameter parameter = i < parameters.size() ? parameters.get(i) : null;
      if (value == null
          || parameter == null
          || value.type() != parameter.type()
          || value.count() != parameter.count()) {
        throw new IllegalArgumentException(
            "not the model's parameters: index=%s, is=%s, expected=%s, rank=%s"
                .formatted(
                    i,
                    value == null ? "none" : value,
                    parameter == null ? "none" : parameter,
                    sync.rank()));
      }
    }
  }

  private static long requirePositive(long value, String name) {
    if (value < 1) {
      throw new IllegalArgumentException(name + " must be 1 or more: " + name + "=" + value);
    }
    return value;
  }
}
