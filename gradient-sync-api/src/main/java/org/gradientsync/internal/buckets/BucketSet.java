package org.gradientsync.internal.buckets;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Parameter;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Resources;

/** The buckets of a model as they are laid out: their memory, and each gradient's view into it. */
public final class BucketSet implements AutoCloseable {
  final BucketLayout layout;
  final Bucket[] buckets;

  /** What tells whether any rank has data, or null. */
  final Flag flag;

  private final List<Parameter> parameters;
  private final DeviceBuffer[] gradients;
  private final Resources resources = new Resources();

  /**
   * Allocates them. Not collective.
   *
   * @param number among those of the sync, from 1
   */
  BucketSet(
      BucketSync sync,
      List<Parameter> parameters,
      BucketLayout layout,
      Stream compute,
      BucketStreams streams,
      int number) {
    this.layout = layout;
    this.parameters = parameters;
    buckets = new Bucket[layout.buckets.size()];
    gradients = new DeviceBuffer[parameters.size()];
    try {
      for (int i = 0; i < buckets.length; i++) {
        Stream stream = streams.of(i, buckets.length);
        BucketLayout.Bucket place = layout.buckets.get(i);
        buckets[i] = resources.add(new Bucket(sync, place, compute, stream));
        name(i, number);
      }
      for (int i = 0; i < gradients.length; i++) {
        gradients[i] = view(i);
      }
      if (layout.flagOffset < 0) {
        flag = null;
      } else {
        DeviceBuffer place = buckets[0].flat.slice(layout.flagOffset, 1);
        flag = resources.add(new Flag(sync.backend(), place, compute));
      }
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
  }

  /**
   * By what errors call a bucket, and the ranks tell it from others: its number, and its first and
   * last parameter. Which of the sync's bucket sets it is comes first, but for the first one.
   */
  private void name(int bucket, int number) {
    int[] members = buckets[bucket].parameters;
    String first = parameters.get(members[0]).name();
    String last = parameters.get(members[members.length - 1]).name();
    String name =
        (number > 1 ? "buckets " + number + ", " : "")
            + ("bucket " + bucket + ": " + first)
            + (members.length > 1 ? " to " + last : "");
    AbstractDeviceBuffer averaged = (AbstractDeviceBuffer) buckets[bucket].averaged;
    BucketLayout places = layout; // all that errors need, long after this is closed
    List<Parameter> names = parameters;
    averaged.named(name).elementsNamed(element -> places.nameOf(bucket, element, names));
  }

  private DeviceBuffer view(int parameter) {
    long count = parameters.get(parameter).count();
    return bucketOf(parameter).flat.slice(layout.offsetOf[parameter], count);
  }

  /** Where a parameter's gradient goes: a new view, if a caller has closed the one it got. */
  DeviceBuffer gradient(int parameter) {
    if (gradients[parameter].isClosed() && !bucketOf(parameter).flat.isClosed()) {
      gradients[parameter] = view(parameter);
    }
    return gradients[parameter];
  }

  /** Begins a step. */
  void begin() {
    for (Bucket bucket : buckets) {
      bucket.begin();
    }
  }

  /** When nothing is under way beside. */
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
