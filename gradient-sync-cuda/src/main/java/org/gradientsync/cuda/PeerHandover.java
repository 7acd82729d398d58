package org.gradientsync.cuda;

import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;

/**
 * Launches the next call's kernel shortly before the end of the one before, where they are on two
 * streams: so it has its place on the GPU at once, which other work would take otherwise. The
 * kernels count, in the mailbox, how many have said that the next may come, and wait inside for the
 * one before; see {@code hand_over} in {@code peer.cuh}. Its user has a lock.
 */
final class PeerHandover {
  private final CudaApi api;
  private final CUdeviceptr counter;

  /** Launches that count in the mailbox. */
  private long launches;

  /** Whether the last call was one. */
  private boolean lastHands;

  PeerHandover(CudaDevice device, PeerMailbox mailbox) {
    api = device.api();
    counter = api.pointer(mailbox.handed());
  }

  /**
   * Lets a stream wait for the last call as briefly as possible. Allocates nothing.
   *
   * @param plan what is to follow on this stream
   * @return false if it has to wait for the call's end
   */
  boolean follow(CUstream stream, PeerPlan plan) {
    if (!lastHands || !plan.handsOver()) {
      return false;
    }
    api.streamWaitsFor(stream, counter, launches);
    return true;
  }

  /** A call has been enqueued; a plan's, or a replayed graph's if that is null. */
  void enqueued(PeerPlan plan) {
    lastHands = plan != null && plan.handsOver();
    launches += lastHands ? 1 : 0;
  }
}
