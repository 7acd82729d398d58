package org.gradientsync.core.collectives.messages;

import org.gradientsync.ReduceOp;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * What one rank reads from the ranks' inputs in a collective, where it has them all in memory:
 * blocks to copy, or blocks to reduce.
 */
public final class BlockReads {
  private final HostDevice device;
  private final boolean reduces;
  private final int rank;
  private final HostBuffer[] sources; // by rank; null where nothing is read
  private final HostBuffer[] targets; // by rank; for a reduction, all in the first one

  /**
   * @param inputs the inputs by rank
   */
  public BlockReads(HostDevice device, HostBuffer[] inputs, CollectiveCall call, int rank) {
    this.device = device;
    this.rank = rank;
    Kind kind = call.kind();
    HostBuffer out = (HostBuffer) call.out();
    reduces = kind.reduces();
    int size = inputs.length;
    sources = new HostBuffer[size];
    targets = new HostBuffer[size];
    if (out == null) {
      return;
    }
    long count = out.count() / kind.outputBlocks(size);
    for (int peer = 0; peer < size; peer++) {
      if (!kind.hasInput(peer, call.root()) || kind == Kind.BROADCAST && peer != call.root()) {
        continue;
      }
      long first = kind.inputBlocks(size) > 1 ? rank * count : 0;
      sources[peer] = (HostBuffer) inputs[peer].slice(first, count);
      targets[peer] = (HostBuffer) out.slice(kind.outputBlocks(size) > 1 ? peer * count : 0, count);
      boolean inPlace = peer == rank && sources[peer].overlaps(targets[peer]);
      if (inPlace && !reduces) {
        sources[peer] = null;
      }
    }
  }

  /** Reads from all ranks, each rank from another one first. */
  public void run(ReduceOp op) {
    if (reduces) {
      if (targets[0] != null) {
        device.reduce(sources, targets[0], op);
      }
      return;
    }
    for (int step = 0; step < sources.length; step++) {
      int peer = (rank + step) % sources.length;
      if (sources[peer] != null) {
        device.copy(sources[peer], targets[peer]);
      }
    }
  }
}
