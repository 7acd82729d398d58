package org.gradientsync.internal.buckets;

import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * Where buckets are averaged: on two streams by turns, so that the next one's work is at the device
 * before the last one's has ended. The backward pass is over when the last bucket is ready, so that
 * has no other work to spare. A reducer that blocks the host has one bucket's work at the device at
 * a time.
 */
public final class BucketStreams implements AutoCloseable {
  private final Resources streams = new Resources();
  private final Stream[] turns;
  private final Stream last; // or null

  /**
   * Makes them.
   *
   * @param blocks whether the reducer blocks the host
   * @param compute what is used instead without overlap
   */
  BucketStreams(BackendDevice device, boolean blocks, Stream compute, boolean overlap) {
    boolean one = !overlap || blocks;
    turns = new Stream[one ? 1 : 2];
    try {
      for (int i = 0; i < turns.length; i++) {
        turns[i] = overlap ? streams.add(device.createStream(true)) : compute;
      }
      last = one ? null : streams.add(device.createStream(false));
    } catch (RuntimeException | Error e) {
      streams.closeAfter(e);
      throw e;
    }
  }

  Stream of(int bucket, int buckets) {
    return last != null && bucket == buckets - 1 ? last : turns[bucket % turns.length];
  }

  @Override
  public void close() {
    streams.close();
  }
}
