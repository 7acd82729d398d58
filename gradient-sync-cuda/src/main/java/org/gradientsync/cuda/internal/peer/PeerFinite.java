package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import org.gradientsync.NotFiniteException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.RankGroup;

/**
 * Reads which NaN and infinities the kernels of all ranks have found in their gradients, and lets
 * all ranks throw at the same place among their calls.
 *
 * <p>Nobody waits for a GPU in a call, so one rank may see a finding some calls earlier than
 * another. If it threw at once, the others would have made calls that it never makes. So it chooses
 * the first call that no rank has begun, and publishes that in the memory that the hosts share.
 * Each rank publishes that it begins a call before it looks for such a choice; so a rank is either
 * taken into account, or sees the choice.
 *
 * <p>Waits of the host throw at once: all ranks that wait for the same calls throw there.
 */
final class PeerFinite implements AutoCloseable {
  /** A finding is a registration number above an index of this many bits, which counts from 1. */
  private static final int INDEX_BITS = 43; // as in protocol.cuh

  private final RankGroup group;
  private final Gpu gpu;
  private final PeerProgress progress;
  private final ByteBuffer found;
  private long begun; // calls that all ranks make, so far; guarded by the group

  /** The last call, as the GPUs count them, whose findings have been thrown. */
  private volatile long thrown;

  PeerFinite(RankGroup group, Gpu gpu, PeerProgress progress) {
    this.group = group;
    this.gpu = gpu;
    this.progress = progress;
    found = progress.found();
    gpu.api().pageLock(found);
  }

  /** The device address to which this rank's kernels write their findings. */
  long deviceAddress() {
    return gpu.api().deviceAddress(found);
  }

  /**
   * Whether a rank's kernels have found something that this rank has not thrown, in a call that
   * this rank's GPU has completed, too. Allocates nothing. Any thread may call it.
   */
  boolean hasFound() {
    return newest(progress.done()) > 0;
  }

  /** The last call up to {@code limit} with a finding that has not been thrown; 0 if none. */
  private long newest(long limit) {
    long newest = 0;
    long after = thrown;
    for (int peer = 0; peer < group.size(); peer++) {
      for (int place = 0; place < PeerProgress.FINDINGS; place++) {
        long call = progress.foundIn(peer, place);
        if (call > after && call <= limit) {
          newest = Math.max(newest, call);
        }
      }
    }
    return newest;
  }

  /**
   * Begins a call that all ranks make. Returns true if all ranks throw in place of this call; then
   * the caller throws {@link #take}. The caller holds the group's lock. Allocates nothing.
   */
  boolean begins() {
    announce();
    long call = ++begun;
    progress.begins(call);
    for (int peer = 0; peer < group.size(); peer++) {
      if (progress.chosenFor(peer) > thrown && awaitChosen(peer) <= call) {
        return true;
      }
    }
    return false;
  }

  /**
   * If something has been found, chooses the first call that no rank has begun, for all ranks to
   * throw in. The caller holds the group's lock.
   */
  void announce() {
    long newest = newest(progress.done());
    if (newest == 0 || progress.chosenFor(group.rank()) > thrown) {
      return;
    }
    progress.willChoose(newest);
    long call = begun + 1;
    for (int peer = 0; peer < group.size(); peer++) {
      call = Math.max(call, progress.begun(peer) + 1);
    }
    progress.chooses(call);
  }

  /** The call that a rank has chosen. Waits for the choice, which takes a few instructions. */
  private long awaitChosen(int peer) {
    long call;
    while ((call = progress.chosen(peer)) == 0) {
      if (!group.isAlive(peer)) {
        return Long.MAX_VALUE;
      }
      Thread.yield();
    }
    return call;
  }

  /**
   * The exception for everything that has been found in the calls so far, which later calls do not
   * throw again. The caller holds the group's lock.
   *
   * @param names the names of the buffers
   * @param awaitCalls waits for the calls so far; after that, all ranks know the same findings
   */
  NotFiniteException take(PeerNames names, Runnable awaitCalls) {
    long limit = progress.done();
    for (int peer = 0; peer < group.size(); peer++) {
      limit =
          Math.max(limit, progress.chosenFor(peer)); // of which this rank's GPU may know nothing
    }
    String text = describe(limit, names); // the first findings, which later ones overwrite
    awaitCalls.run();
    limit = Math.max(limit, progress.done());
    text = text.isEmpty() ? describe(limit, names) : text;
    thrown = limit;
    NotFiniteException failure =
        new NotFiniteException("gradients are not finite, rank=" + group.rank() + ":" + text);
    group.thrownByAll(failure);
    return failure;
  }

  /** Describes each rank's first finding that has not been thrown, up to a call. */
  private String describe(long limit, PeerNames names) {
    StringBuilder text = new StringBuilder();
    for (int peer = 0; peer < group.size(); peer++) {
      int first = -1;
      for (int place = 0; place < PeerProgress.FINDINGS; place++) {
        long call = progress.foundIn(peer, place);
        if (call > thrown && call <= limit && (first < 0 || call < progress.foundIn(peer, first))) {
          first = place;
        }
      }
      if (first >= 0) {
        long what = progress.foundBy(peer, first);
        int registration = (int) (what >>> INDEX_BITS);
        long element = (what & (1L << INDEX_BITS) - 1) - 1;
        text.append("\n  rank ").append(peer).append(": ").append(names.of(registration));
        text.append(", ").append(names.placeOf(registration, element));
      }
    }
    return text.toString();
  }

  @Override
  public void close() {
    gpu.api().pageUnlock(found);
  }
}
