package org.gradientsync.cuda;

import java.nio.ByteBuffer;
import java.util.Map;
import org.gradientsync.NotFiniteException;
import org.gradientsync.collective.Group;

/** Reads what all ranks' kernels have found in their gradients that is not finite. */
final class PeerFinite implements AutoCloseable {
  /** What is found is the number of a registration, and an index counted from 1 below. */
  private static final int INDEX_BITS = 43; // as in peer.cuh

  private final CudaDevice device;
  private final PeerProgress progress;
  private final ByteBuffer found;
  private final long[] seen;

  PeerFinite(CudaDevice device, PeerProgress progress, int ranks) {
    this.device = device;
    this.progress = progress;
    found = progress.found();
    seen = new long[ranks];
    device.api().pageLock(found);
  }

  /** Where this rank's kernels find the place for what they find. */
  long deviceAddress() {
    return device.api().deviceAddress(found);
  }

  /**
   * Throws if a rank's kernels have found something since the last time, in a call that this rank's
   * GPU has ended, too: ranks that wait for the device at the same places throw at the same places.
   * To be called after waiting; allocates nothing if there is nothing.
   *
   * @param names of the buffers, by the number of their registration
   */
  void check(Group group, Map<Integer, String> names) {
    for (int peer = 0; peer < seen.length; peer++) {
      if (isNew(peer)) {
        throw found(group, names);
      }
    }
  }

  private boolean isNew(int peer) {
    long call = progress.foundIn(peer);
    return call != seen[peer] && call <= progress.done();
  }

  private synchronized NotFiniteException found(Group group, Map<Integer, String> names) {
    StringBuilder text = new StringBuilder("gradients are not finite, rank=" + group.rank() + ":");
    for (int peer = 0; peer < seen.length; peer++) {
      if (isNew(peer)) {
        seen[peer] = progress.foundIn(peer);
        long what = progress.foundBy(peer);
        String name = names.getOrDefault((int) (what >>> INDEX_BITS), "a buffer");
        text.append("\n  rank ").append(peer).append(": ").append(name);
        text.append(", index=").append((what & (1L << INDEX_BITS) - 1) - 1);
      }
    }
    return new NotFiniteException(text.toString());
  }

  @Override
  public void close() {
    device.api().pageUnlock(found);
  }
}
