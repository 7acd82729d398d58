package org.gradientsync.hooks;

import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;

/**
 * Sends only the elements of the largest magnitude of each parameter's gradient: each rank its own,
 * with their indices. The average of the others is zero in this step; with error feedback they wait
 * until they have grown.
 *
 * <p>A rank sends k values, in FLOAT32 (FLOAT64 for FLOAT64 gradients), and k indices of 4 bytes,
 * and receives those of all ranks. So it pays off for few ranks: the bytes that a rank receives
 * grow with their number, which those of an average do not.
 *
 * <p>NaN and infinities are among the largest elements, so they arrive in the averages, also with
 * {@link org.gradientsync.GradientSync.Builder#requireFinite}.
 *
 * <p>Computes in Java. Takes 8 bytes of the Java heap for each element of the model, and up to 24
 * more for each of the bucket that it compresses.
 *
 * <p>After Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017.
 */
public final class TopK extends Compression {
  private final double fraction;

  /**
   * Creates a hook.
   *
   * @param fraction of the elements of each parameter, more than 0 and at most 1; rounded up to a
   *     whole number of elements
   * @throws IllegalArgumentException if it is not in this range
   */
  public TopK(double fraction) {
    if (!(fraction > 0 && fraction <= 1)) {
      throw new IllegalArgumentException(
          "fraction must be more than 0 and at most 1: fraction=" + fraction);
    }
    this.fraction = fraction;
  }

  @Override
  String kind() {
    return "topk:" + fraction;
  }

  @Override
  void compress(FullBucket bucket) {
    int all = bucket.parts().stream().mapToInt(this::sent).sum();
    int ranks = bucket.sync().size();
    DeviceBuffer ownValues = scratch(bucket, "values", wide(bucket), all);
    DeviceBuffer ownIndices = scratch(bucket, "indices", DataType.INT32, all);
    DeviceBuffer values = scratch(bucket, "all values", wide(bucket), (long) ranks * all);
    DeviceBuffer indices = scratch(bucket, "all indices", DataType.INT32, (long) ranks * all);
    double[][] gradients = new double[bucket.parts().size()][];
    double[] chosen = new double[all];
    int[] places = new int[all];
    int first = 0;
    for (int p = 0; p < gradients.length; p++) {
      gradients[p] = withError(bucket.parts().get(p));
      int count = sent(bucket.parts().get(p));
      choose(gradients[p], count, places, first);
      for (int i = first; i < first + count; i++) {
        chosen[i] = gradients[p][places[i]];
      }
      first += count;
    }
    Elements.write(chosen, ownValues);
    ownIndices.copyFrom(places);
    chosen = Elements.read(ownValues); // rounded
    exchange(bucket, ownValues, values);
    exchange(bucket, ownIndices, indices);
    double[] allValues = Elements.read(values);
    int[] allPlaces = new int[Math.multiplyExact(ranks, all)];
    indices.copyTo(allPlaces);
    first = 0;
    for (int p = 0; p < gradients.length; p++) {
      Part part = bucket.parts().get(p);
      int count = sent(part);
      double[] sum = new double[gradients[p].length];
      for (int rank = 0; rank < ranks; rank++) { // in rank order: the same bits on all ranks
        for (int i = rank * all + first; i < rank * all + first + count; i++) {
          sum[allPlaces[i]] += allValues[i];
        }
      }
      Arrays.setAll(sum, i -> sum[i] / ranks);
      Elements.write(sum, part.gradient());
      if (Elements.areFinite(Elements.read(part.gradient()))) { // rounded to its type
        for (int i = first; i < first + count; i++) {
          gradients[p][places[i]] -= chosen[i];
        }
        keepError(part, gradients[p]);
      }
      first += count;
    }
  }

  private int sent(Part part) {
    return (int) Math.ceil(Elements.length(part.gradient()) * fraction);
  }

  /** Writes the ascending indices of the largest magnitudes; of equal ones, the first. */
  private static void choose(double[] values, int count, int[] places, int first) {
    if (count == 0) {
      return;
    }
    double[] sorted = new double[values.length];
    Arrays.setAll(sorted, i -> Math.abs(values[i]));
    Arrays.sort(sorted); // NaN is the largest
    double least = sorted[values.length - count];
    int equal = count;
    for (int i = values.length - count; i < values.length; i++) {
      equal -= Double.compare(sorted[i], least) > 0 ? 1 : 0;
    }
    int next = first;
    for (int i = 0; i < values.length; i++) {
      int order = Double.compare(Math.abs(values[i]), least);
      if (order > 0 || order == 0 && equal-- > 0) {
        places[next++] = i;
      }
    }
  }
}
