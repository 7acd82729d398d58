package org.gradientsync;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Which gradient lies in which bucket, and where. A bucket holds gradients of one type, in the
 * order in which they are expected to become ready, and is closed when it has reached its size.
 * Buckets are in the order in which they become full.
 */
final class BucketLayout {
  /** Where a gradient begins: what matrix products want, and a whole line for the links. */
  private static final int ALIGNMENT = 256;

  /** One bucket. */
  static final class Bucket {
    final DataType type;
    final List<Integer> parameters = new ArrayList<>();
    long count;

    private Bucket(DataType type) {
      this.type = type;
    }

    /** Makes room behind what is there. */
    private long add(long elements) {
      long at = count;
      int step = ALIGNMENT / type.sizeInBytes();
      count += (elements + step - 1) / step * step;
      return at;
    }

    private long bytes() {
      return count * type.sizeInBytes();
    }
  }

  final List<Bucket> buckets = new ArrayList<>();
  final int[] bucketOf;
  final long[] offsetOf;

  /** Where the first bucket has one element more, for ranks without data; or -1. */
  final long flagOffset;

  /**
   * Lays gradients out.
   *
   * @param order the parameters' numbers, the one that is ready first at the front
   * @param firstBytes when the first bucket is closed
   * @param bytes when another bucket is closed
   * @param flag whether the first bucket has one element more
   */
  BucketLayout(List<Parameter> parameters, int[] order, long firstBytes, long bytes, boolean flag) {
    bucketOf = new int[order.length];
    offsetOf = new long[order.length];
    Map<DataType, Bucket> open = new EnumMap<>(DataType.class);
    Bucket first = null;
    for (int parameter : order) {
      Bucket bucket = open.computeIfAbsent(parameters.get(parameter).type(), Bucket::new);
      first = first == null ? bucket : first;
      offsetOf[parameter] = bucket.add(parameters.get(parameter).count());
      bucket.parameters.add(parameter);
      if (bucket.bytes() >= (bucket == first ? firstBytes : bytes)) {
        close(open.remove(bucket.type));
      }
    }
    // What is left becomes full with its last gradient, in this order.
    for (int parameter : order) {
      Bucket bucket = open.get(parameters.get(parameter).type());
      if (bucket != null && bucket.parameters.get(bucket.parameters.size() - 1) == parameter) {
        close(bucket);
      }
    }
    flagOffset = flag ? buckets.get(0).add(1) : -1;
  }

  private void close(Bucket bucket) {
    for (int parameter : bucket.parameters) {
      bucketOf[parameter] = buckets.size();
    }
    buckets.add(bucket);
  }
}
