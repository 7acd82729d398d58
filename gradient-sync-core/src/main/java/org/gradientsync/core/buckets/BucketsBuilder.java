package org.gradientsync.core.buckets;

import java.util.List;
import java.util.Objects;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;

/** Builds buckets. */
public final class BucketsBuilder extends GradientBuckets.Builder {
  final BucketSync sync;
  final List<Parameter> parameters;
  long firstBytes = 1 << 20;
  long bytes = 25 << 20;
  boolean overlap = true;
  boolean unevenSteps;
  boolean sharded;
  GradientBuckets.Missing missing = GradientBuckets.Missing.REFUSE;
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
  public BucketsBuilder unevenSteps() {
    unevenSteps = true;
    return this;
  }

  @Override
  public BucketsBuilder sharded() {
    sharded = true;
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

  private static long requirePositive(long value, String name) {
    if (value < 1) {
      throw new IllegalArgumentException(name + " must be 1 or more: " + name + "=" + value);
    }
    return value;
  }
}
