package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import org.gradientsync.NotFiniteException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;

/** Reads which NaN and infinities the kernels of all ranks have found in their gradients. */
final class PeerFinite implements AutoCloseable {
  /** A finding is a registration number above an index of this many bits, which counts from 1. */
  private static final int INDEX_BITS = 43; // as in protocol.cuh

  private final Gpu gpu;
  private final PeerProgress progress;
  private final ByteBuffer found;
  private final long[] seen;

  PeerFinite(Gpu gpu, PeerProgress progress, int ranks) {
    this.gpu = gpu;
    this.progress = progress;
    found = progress.found();
    seen = new long[ranks];
    gpu.api().pageLock(found);
  }

  /** The device address to which this rank's kernels write their findings. */
  long deviceAddress() {
    return gpu.api().deviceAddress(found);
  }

  /**
   * Throws if a rank's kernels have found something since the last check, in a call that this
   * rank's GPU has completed, too. So all ranks that wait for the same calls throw there. Call this
   * after waiting. Allocates nothing if there are no findings.
   *
   * @param names the names of the buffers
   */
  void check(RankGroup group, PeerNames names) {
    for (int peer = 0; peer < seen.length; peer++) {
      if (newest(peer, progress.done()) >= 0) {
        throwUnseen(group, names);
        return;
      }
    }
  }

  /**
   * The place of a rank's newest finding up to call {@code done} that has not been thrown yet, or
   * -1.
   */
  private int newest(int peer, long done) {
    int newest = -1;
    long after = seen[peer];
    for (int place = 0; place < PeerProgress.FINDINGS; place++) {
      long call = progress.foundIn(peer, place);
      if (call > after && call <= done) {
        newest = place;
        after = call;
      }
    }
    return newest;
  }

  private synchronized void throwUnseen(RankGroup group, PeerNames names) {
    long done = progress.done();
    StringBuilder text = new StringBuilder();
    for (int peer = 0; peer < seen.length; peer++) {
      int place = newest(peer, done);
      if (place >= 0) {
        long what = progress.foundBy(peer, place);
        seen[peer] = done; // older findings no longer matter
        int registration = (int) (what >>> INDEX_BITS);
        long element = (what & (1L << INDEX_BITS) - 1) - 1;
        text.append("\n  rank ").append(peer).append(": ").append(names.of(registration));
        text.append(", ").append(names.placeOf(registration, element));
      }
    }
    if (!text.isEmpty()) { // otherwise another thread has thrown it meanwhile
      throw new NotFiniteException("gradients are not finite, rank=" + group.rank() + ":" + text);
    }
  }

  @Override
  public void close() {
    gpu.api().pageUnlock(found);
  }
}
