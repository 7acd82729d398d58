package org.gradientsync.internal.collectives;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.host.HostBuffer;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.spi.Collective;

/**
 * What one rank reads from the other ranks' inputs in a collective over shared memory: blocks to
 * copy, or blocks to reduce.
 */
final class SharedTransferPlan implements AutoCloseable {
  private final HostDevice device;
  private final NodeBuffers.Mapped inputs;
  private final boolean reduces;
  private final int rank;
  private final DeviceBuffer[] sources; // by rank; null where nothing is read
  private final DeviceBuffer[] targets; // by rank; for a reduction, all in the first one

  /**
   * @param inputs the ranks' inputs, mapped
   * @param out this rank's output, or null
   */
  SharedTransferPlan(
      HostDevice device,
      NodeBuffers.Mapped inputs,
      Collective collective,
      HostBuffer out,
      int rank,
      int size,
      int root) {
    this.device = device;
    this.inputs = inputs;
    this.rank = rank;
    reduces = collective.reduces();
    sources = new DeviceBuffer[size];
    targets = new DeviceBuffer[size];
    if (out == null) {
      return;
    }
    long count = out.count() / collective.outputBlocks(size);
    for (int peer = 0; peer < size; peer++) {
      if (!collective.hasInput(peer, root)) {
        continue;
      }
      HostBuffer input = inputs.of(peer);
      sources[peer] = input.slice(collective.inputBlocks(size) > 1 ? rank * count : 0, count);
      targets[peer] = out.slice(collective.outputBlocks(size) > 1 ? peer * count : 0, count);
      boolean inPlace =
          peer == rank && ((HostBuffer) sources[peer]).overlaps((HostBuffer) targets[peer]);
      if (inPlace && !reduces) {
        sources[peer] = null;
      }
    }
  }

  boolean isValid() {
    return inputs.isValid();
  }

  /** Reads from all ranks, each rank from another one first. */
  void run(ReduceOp op) {
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

  @Override
  public void close() {
    inputs.close();
  }
}
