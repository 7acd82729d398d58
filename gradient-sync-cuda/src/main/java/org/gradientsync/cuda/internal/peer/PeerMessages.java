package org.gradientsync.cuda.internal.peer;

import jcuda.driver.CUstream;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.spi.CollectiveCall;

/**
 * Messages between two ranks. The sender's kernel writes into a bounded part of the receiver's
 * mailbox, from which the receiver's kernel takes. Other ranks take no part.
 */
final class PeerMessages {
  private final PeerLayout layout;
  private final int rank;
  private final PeerLaunch[] sends;
  private final PeerLaunch[] receives;

  /** Loads the kernels, because loading could later block on a running kernel. */
  PeerMessages(PeerPlanner planner, PeerLayout layout, int rank, int ranks) {
    this.layout = layout;
    this.rank = rank;
    sends = new PeerLaunch[ranks];
    receives = new PeerLaunch[ranks];
    for (int peer = 0; peer < ranks; peer++) {
      if (peer != rank) {
        sends[peer] = planner.message(peer, true);
        receives[peer] = planner.message(peer, false);
      }
    }
  }

  /** Enqueues this rank's part, after the hosts have met. Allocates nothing. */
  void enqueue(CollectiveCall message, CUstream stream) {
    CudaBuffer buffer = (CudaBuffer) message.buffer();
    PeerLaunch launch = (message.sends() ? sends : receives)[message.peer()];
    long bytes = buffer.sizeInBytes();
    launch.message(rank, buffer.address(), bytes, layout.messageBlocks(bytes));
    launch.enqueue(stream);
  }
}
