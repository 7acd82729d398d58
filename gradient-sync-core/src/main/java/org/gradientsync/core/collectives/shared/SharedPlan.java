package org.gradientsync.core.collectives.shared;

import org.gradientsync.ReduceOp;

/** How one call reads the other ranks' memory, valid while the ranks' inputs stay in place. */
interface SharedPlan extends AutoCloseable {
  NodeBuffers.Mapped inputs();

  /** Runs the call after its rendezvous. The other ranks may still read this rank's memory. */
  void run(ReduceOp op);

  @Override
  default void close() {
    inputs().close();
  }
}
