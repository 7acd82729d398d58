package org.gradientsync.core.collectives.shared;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;

/**
 * An all-reduce in place, without a staging copy. Each rank owns a shard. It reduces that in rank
 * order, directly from all ranks' memory into its own. Then it copies the other shards from their
 * owners.
 */
final class SharedAllReduce implements SharedPlan {
  private final ProcessGroup group;
  private final SharedMemoryRendezvous rendezvous;
  private final HostDevice device;
  private final NodeBuffers.Mapped inputs;
  private final Shards shards;
  private final DeviceBuffer[]
      contributions; // to this rank's shard, by rank; null without elements

  SharedAllReduce(
      ProcessGroup group,
      SharedMemoryRendezvous rendezvous,
      HostDevice device,
      NodeBuffers.Mapped inputs) {
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.inputs = inputs;
    int rank = group.rank();
    shards = new Shards(inputs.of(rank).count(), group.size(), Shards.WHOLE);
    contributions = new DeviceBuffer[group.size()];
    long first = shards.first(rank, 0);
    long length = shards.length(rank, 0);
    for (int peer = 0; peer < contributions.length && length > 0; peer++) {
      contributions[peer] = inputs.of(peer).slice(first, length);
    }
  }

  @Override
  public NodeBuffers.Mapped inputs() {
    return inputs;
  }

  @Override
  public void run(ReduceOp op) {
    int rank = group.rank();
    int size = group.size();
    if (contributions[rank] != null) {
      device.reduce(contributions, contributions[rank], op);
    }
    rendezvous.set(SharedMemoryRendezvous.REDUCED);
    for (int step = 1; step < size; step++) {
      int owner = (rank + step) % size; // each starts with a different owner, to spread the load
      group.await(rendezvous.expect(owner, SharedMemoryRendezvous.REDUCED), owner);
      long first = shards.first(owner, 0);
      inputs.of(rank).copyRange(first, inputs.of(owner), shards.length(owner, 0));
    }
  }
}
