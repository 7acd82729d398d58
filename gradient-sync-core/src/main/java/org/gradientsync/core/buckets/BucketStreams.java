package org.gradientsync.core.buckets;

import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * The streams on which buckets are averaged: two that alternate, so that the device has the next
 * bucket's work before it completes the current one's. The last bucket has a stream that may use
 * the whole device, because the backward pass is over when that bucket is ready. A reducer that
 * blocks the host needs only one stream, because it enqueues one bucket's work at a time, and so do
 * hooks, whose memory may be for all buckets.
 */
public final class BucketStreams implements AutoCloseable {
  private final Resources streams = new Resources();
  private final Stream[] alternating;
  private final Stream last; // or null

  /**
   * Creates the streams.
   *
   * @param single whether averages take one stream
   * @param compute the only stream without overlap
   */
  BucketStreams(BackendDevice device, boolean single, Stream compute, boolean overlap) {
    boolean one = !overlap || single;
    alternating = new Stream[one ? 1 : 2];
    try {
      for (int i = 0; i < alternating.length; i++) {
        alternating[i] = overlap ? streams.add(device.createStream(true)) : compute;
      }
      last = one ? null : streams.add(device.createStream(false));
    } catch (RuntimeException | Error e) {
      streams.closeAfter(e);
      throw e;
    }
  }

  Stream of(int bucket, int buckets) {
    return last != null && bucket == buckets - 1 ? last : alternating[bucket % alternating.length];
  }

  @Override
  public void close() {
    streams.close();
  }
}
