package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import java.util.Map;
import org.gradientsync.NotFiniteException;
import org.gradientsync.collective.Group;

/**
 * Has this rank's GPU look at each gradient before it is reduced, without waiting for the answer,
 * and reads what all ranks' GPUs have found.
 */
final class PeerFinite implements AutoCloseable {
  /** What is larger is a time. */
  private static final long MOST_CALLS = 1L << 48;

  private final CudaDevice device;
  private final Group group;
  private final PeerProgress progress;
  private final FiniteKernel kernel;
  private final ByteBuffer found;
  private final long address;
  private final long[] seen;

  PeerFinite(CudaDevice device, Group group, PeerProgress progress) {
    this.device = device;
    this.group = group;
    this.progress = progress;
    found = progress.found();
    seen = new long[group.size()];
    device.api().pageLock(found);
    try {
      address = device.api().deviceAddress(found);
      kernel = new FiniteKernel(device);
    } catch (RuntimeException | Error e) {
      device.api().pageUnlock(found);
      throw e;
    }
  }

  /** Enqueues, for the call that {@link Group#enqueued} has counted last. Allocates nothing. */
  void look(CudaBuffer buffer, int registration) {
    kernel.launch(buffer, registration, Math.max(0, group.enqueued()), address);
  }

  /**
   * Throws if a rank's GPU has found something since the last time, in a call that this rank has
   * made, too: ranks that wait for the device at the same places throw at the same places. To be
   * called after waiting.
   *
   * @param names of the buffers, by the number of their registration
   */
  void check(Map<Integer, String> names) {
    for (int peer = 0; peer < seen.length; peer++) {
      if (isNew(peer)) {
        throw found(names);
      }
    }
  }

  private boolean isNew(int peer) {
    long call = progress.foundIn(peer);
    long own = group.enqueued();
    return call != seen[peer] && (own < 0 || call <= own || call > MOST_CALLS);
  }

  private synchronized NotFiniteException found(Map<Integer, String> names) {
    StringBuilder text = new StringBuilder("gradients are not finite, rank=" + group.rank() + ":");
    for (int peer = 0; peer < seen.length; peer++) {
      if (isNew(peer)) {
        seen[peer] = progress.foundIn(peer);
        long what = progress.foundBy(peer);
        String name = names.getOrDefault(FiniteKernel.numberOf(what), "a buffer");
        text.append("\n  rank ").append(peer).append(": ").append(name);
        text.append(", index=").append(FiniteKernel.indexOf(what));
      }
    }
    return new NotFiniteException(text.toString());
  }

  @Override
  public void close() {
    try {
      kernel.close();
    } finally {
      device.api().pageUnlock(found);
    }
  }
}
