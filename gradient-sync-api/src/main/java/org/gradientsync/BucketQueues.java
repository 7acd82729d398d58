package org.gradientsync;

import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.WorkQueue;

/**
 * Where buckets are averaged: on two queues by turns, so that the next one's work is at the device
 * before the last one's has ended. The backward pass is over when the last bucket is ready, so that
 * has no other work to spare. A reducer that blocks the host has one bucket's work at the device at
 * a time.
 */
final class BucketQueues implements AutoCloseable {
  private final Resources queues = new Resources();
  private final WorkQueue[] turns;
  private final WorkQueue last; // or null

  /**
   * Makes them.
   *
   * @param blocks whether the reducer blocks the host
   * @param compute what is used instead without overlap
   */
  BucketQueues(BackendDevice device, boolean blocks, WorkQueue compute, boolean overlap) {
    boolean one = !overlap || blocks;
    turns = new WorkQueue[one ? 1 : 2];
    try {
      for (int i = 0; i < turns.length; i++) {
        turns[i] = overlap ? queues.add(device.createQueue(true)) : compute;
      }
      last = one ? null : queues.add(device.createQueue(false));
    } catch (RuntimeException | Error e) {
      queues.closeAfter(e);
      throw e;
    }
  }

  WorkQueue of(int bucket, int buckets) {
    return last != null && bucket == buckets - 1 ? last : turns[bucket % turns.length];
  }

  @Override
  public void close() {
    queues.close();
  }
}
