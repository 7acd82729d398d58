package org.gradientsync.core.collectives.shared;

import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.BlockReads;

/** A collective with an input and an output: each rank reads what it needs from all inputs. */
record SharedReads(NodeBuffers.Mapped inputs, BlockReads reads) implements SharedPlan {
  @Override
  public void run(ReduceOp op) {
    reads.run(op);
  }
}
