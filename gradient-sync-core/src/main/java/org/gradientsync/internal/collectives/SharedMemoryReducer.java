package org.gradientsync.internal.collectives;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostBuffer;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.internal.matching.SharedMemoryRendezvous;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.Resources;

/**
 * The reducer for processes of one node, which read each other's buffers in place.
 *
 * <p>Each rank owns a shard. After the rendezvous it reduces its shard in rank order, directly from
 * all ranks' memory into its own. Then it copies the other shards from their owners, and returns
 * when no rank reads its memory any more. In place, without a staging copy or a system call.
 *
 * <p>With each call, ranks announce where their buffers lie: the id of the memory and the offset in
 * it. If any rank's buffer lies in private memory (wrapped, or allocated when the memory file
 * system was full), all ranks reduce it by messages.
 *
 * <p>Collectives with an input and an output read the other ranks' inputs in the same way. Small
 * inputs travel with the calls.
 */
public final class SharedMemoryReducer extends ForwardingReducer<MessageReducer> {
  private final String name;
  private final ProcessGroup group;
  private final SharedMemoryRendezvous rendezvous;
  private final HostDevice device;
  private final NodeMates mates;
  private final PlanCache<Plan> plans;
  private final CollectivePlans<Transfer> transfers;
  private final CollectivePlans<CarriedTransfer> carried;
  private final NodeBuffers buffers;

  /** The views for reducing one buffer, valid while the ranks' buffers stay in place. */
  private static final class Plan {
    private final NodeBuffers.Mapped whole;
    private final DeviceBuffer[] contributions;
    private final Shards shards;

    Plan(NodeBuffers.Mapped whole, Shards shards, int rank) {
      this.whole = whole;
      this.shards = shards;
      contributions = new DeviceBuffer[shards.ranks()];
      if (shards.length(rank, 0) > 0) {
        for (int peer = 0; peer < contributions.length; peer++) {
          contributions[peer] = whole.of(peer).slice(shards.first(rank, 0), shards.length(rank, 0));
        }
      }
    }
  }

  /** What to read from the ranks' inputs, valid while those stay in place. */
  private record Transfer(NodeBuffers.Mapped inputs, SharedTransferPlan plan)
      implements AutoCloseable {
    @Override
    public void close() {
      inputs.close();
    }
  }

  SharedMemoryReducer(
      String name,
      ProcessGroup group,
      SharedMemoryRendezvous rendezvous,
      HostDevice device,
      NodeMemory node) {
    super(new MessageReducer(name, group, device));
    this.name = name;
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.mates = new NodeMates(group, group.ranks().all(), rendezvous, node);
    this.plans = new PlanCache<>(group, plan -> plan.whole.close());
    this.transfers = new CollectivePlans<>(group);
    this.carried = new CollectivePlans<>(group);
    this.buffers = new NodeBuffers(rendezvous, device, node, group.rank());
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    HostBuffer own = (HostBuffer) buffer;
    synchronized (group) {
      group.meetForAllReduce(own, op);
      if (group.size() == 1 || own.count() == 0) {
        group.finished();
        return;
      }
      if (anyPrivate()) {
        other.reduceAfterRendezvous(own, op);
        group.finished();
        return;
      }
      try {
        run(plan(own), op);
        group.finished();
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        throw mates.broken(own, e);
      }
    }
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    synchronized (group) {
      CarriedTransfer small = carried(collective, (HostBuffer) in, (HostBuffer) out, root);
      rendezvous.carry(small);
      group.meetFor(collective, in, out, op, root);
      if (small != null) {
        run(small, op);
        group.finished();
        return;
      }
      if (collective.blockCount(in, out, group.size()) == 0) {
        group.finished();
        return;
      }
      if (group.size() == 1 || anyPrivateInput(collective, root)) {
        other.runAfterRendezvous(collective, in, out, op, root);
        group.finished();
        return;
      }
      try {
        transfer(collective, (HostBuffer) in, (HostBuffer) out, root).plan().run(op);
        mates.finishReading();
        group.finished();
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        throw mates.broken((HostBuffer) (in != null ? in : out), e);
      }
    }
  }

  private void run(CarriedTransfer small, ReduceOp op) {
    try {
      small.run(rendezvous.slot(), op);
    } catch (RuntimeException | Error e) {
      throw group.lost("the call failed in the middle: " + e, e);
    }
  }

  /** Null if the inputs are too large or empty, or there are no other ranks. */
  private CarriedTransfer carried(Collective collective, HostBuffer in, HostBuffer out, int root) {
    int size = group.size();
    if (size == 1
        || collective.blockCount(in, out, size) == 0
        || !CarriedTransfer.fits(collective, in, out, size)) {
      return null;
    }
    CarriedTransfer plan = carried.get(collective, in, out, root);
    if (plan == null) {
      plan = new CarriedTransfer(device, rendezvous, collective, in, out, group.rank(), size, root);
      carried.put(collective, in, out, root, plan);
    }
    return plan;
  }

  private boolean anyPrivateInput(Collective collective, int root) {
    boolean any = false;
    for (int peer = 0; peer < group.size(); peer++) {
      any |= collective.hasInput(peer, root) && Call.memoryId(rendezvous.call(peer)) < 0;
    }
    return any;
  }

  private Transfer transfer(Collective collective, HostBuffer in, HostBuffer out, int root) {
    Transfer transfer = transfers.get(collective, in, out, root);
    if (transfer != null && transfer.inputs().isValid()) {
      return transfer;
    }
    if (transfer != null) {
      transfers.forget(collective, in, out, root);
    }
    int size = group.size();
    HostBuffer any = in != null ? in : out;
    long count = collective.blockCount(in, out, size) * collective.inputBlocks(size);
    NodeBuffers.Mapped inputs = buffers.map(in, any.type(), count, size);
    transfer =
        new Transfer(
            inputs,
            new SharedTransferPlan(device, inputs.all(), collective, out, group.rank(), root));
    transfers.put(collective, in, out, root, transfer);
    return transfer;
  }

  private void run(Plan plan, ReduceOp op) {
    int rank = group.rank();
    int size = group.size();
    DeviceBuffer[] contributions = plan.contributions;
    if (contributions[rank] != null) {
      device.reduce(contributions, contributions[rank], op);
    }
    rendezvous.set(SharedMemoryRendezvous.REDUCED);
    for (int step = 1; step < size; step++) {
      int owner = (rank + step) % size; // each starts with a different owner, to spread the load
      group.await(rendezvous.flag(owner, SharedMemoryRendezvous.REDUCED), owner);
      plan.whole
          .of(rank)
          .copyRange(
              plan.shards.first(owner, 0), plan.whole.of(owner), plan.shards.length(owner, 0));
    }
    mates.finishReading();
  }

  private boolean anyPrivate() {
    boolean any = false;
    for (int peer = 0; peer < group.size(); peer++) {
      any |= Call.memoryId(rendezvous.call(peer)) < 0;
    }
    return any;
  }

  private Plan plan(HostBuffer own) {
    Plan plan = plans.get(own);
    if (plan == null || !plan.whole.isValid()) {
      plans.forget(own);
      Shards shards = new Shards(own.count(), group.size(), Shards.WHOLE);
      plan =
          new Plan(buffers.map(own, own.type(), own.count(), group.size()), shards, group.rank());
      plans.put(own, plan);
    }
    return plan;
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(plans, transfers, carried, other);
    }
  }
}
