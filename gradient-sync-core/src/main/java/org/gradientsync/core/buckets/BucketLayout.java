package org.gradientsync.core.buckets;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Parameter;

/**
 * The bucket and offset of each gradient. A bucket holds gradients of one type, in the order in
 * which they are expected to become ready, until it has reached its size. Buckets are in the order
 * in which they become full.
 */
public final class BucketLayout {
  /**
   * The alignment of gradients in bytes: enough for matrix products, and a whole cache line for the
   * links.
   */
  private static final int ALIGNMENT = 256;

  /** One bucket. */
  static final class Place {
    final DataType type;
    final List<Integer> parameters = new ArrayList<>();
    long count;
    private int last; // position in the order of its last gradient

    Place(DataType type) {
      this.type = type;
    }

    /** Reserves space at the end and returns its offset. */
    long add(long elements) {
      long at = count;
      int step = ALIGNMENT / type.sizeInBytes();
      count += (elements + step - 1) / step * step;
      return at;
    }

    private void padTo(long multiple) {
      count = (count + multiple - 1) / multiple * multiple;
    }

    private long bytes() {
      return count * type.sizeInBytes();
    }
  }

  final List<Place> buckets = new ArrayList<>();
  final int[] bucketOf;
  final long[] offsetOf;

  /** The offset of the {@link StepFlags} in the last bucket, or -1 without any. */
  final long flagOffset;

  /**
   * Lays out the gradients.
   *
   * @param order the parameters' indices in the order in which their gradients become ready
   * @param firstBytes the size at which the first bucket is full
   * @param bytes the size at which any other bucket is full
   * @param flags how many additional elements the last bucket has for the {@link StepFlags}
   * @param shards the number of equal blocks that each bucket consists of, all of them aligned
   */
  BucketLayout(
      List<Parameter> parameters, int[] order, long firstBytes, long bytes, int flags, int shards) {
    bucketOf = new int[order.length];
    offsetOf = new long[order.length];
    Map<DataType, Place> open = new EnumMap<>(DataType.class);
    Place first = null;
    for (int position = 0; position < order.length; position++) {
      int parameter = order[position];
      Place bucket = open.get(parameters.get(parameter).type());
      if (bucket == null) {
        bucket = new Place(parameters.get(parameter).type());
        open.put(bucket.type, bucket);
        buckets.add(bucket);
      }
      first = first == null ? bucket : first;
      offsetOf[parameter] = bucket.add(parameters.get(parameter).count());
      bucket.parameters.add(parameter);
      bucket.last = position;
      if (bucket.bytes() >= (bucket == first ? firstBytes : bytes)) {
        open.remove(bucket.type);
      }
    }
    buckets.sort(Comparator.comparingInt(bucket -> bucket.last));
    for (int i = 0; i < buckets.size(); i++) {
      for (int parameter : buckets.get(i).parameters) {
        bucketOf[parameter] = i;
      }
    }
    if (flags > 0 && buckets.isEmpty()) {
      buckets.add(new Place(DataType.FLOAT32)); // of a model without parameters
    }
    flagOffset = flags > 0 ? buckets.get(buckets.size() - 1).add(flags) : -1;
    for (Place bucket : buckets) {
      bucket.padTo((long) shards * ALIGNMENT / bucket.type.sizeInBytes());
    }
  }

  /** Whether every gradient has the same bucket and offset in a layout with the same options. */
  boolean isSameAs(BucketLayout other) {
    return Arrays.equals(bucketOf, other.bucketOf) && Arrays.equals(offsetOf, other.offsetOf);
  }

  /**
   * Lists the parts of gradients within a block of a bucket, in the order of its elements.
   *
   * @param first the block's first element in the bucket
   * @param count the number of the block's elements
   */
  List<GradientBuckets.Piece> pieces(
      int bucket, long first, long count, List<Parameter> parameters) {
    List<GradientBuckets.Piece> pieces = new ArrayList<>();
    for (int parameter : buckets.get(bucket).parameters) {
      long offset = offsetOf[parameter];
      long from = Math.max(offset, first);
      long to = Math.min(offset + parameters.get(parameter).count(), first + count);
      if (from < to) {
        pieces.add(new GradientBuckets.Piece(parameter, from - offset, from - first, to - from));
      }
    }
    return pieces;
  }

  /**
   * {@return the name of an element of a bucket, by its gradient and the index in it, for example
   * {@code layer3[77]}, or an empty text if the element belongs to no gradient}
   */
  String nameOf(int bucket, long element, List<Parameter> parameters) {
    for (int parameter : buckets.get(bucket).parameters) {
      long index = element - offsetOf[parameter];
      if (index >= 0 && index < parameters.get(parameter).count()) {
        return parameters.get(parameter).name() + "[" + index + "]";
      }
    }
    return "";
  }
}
