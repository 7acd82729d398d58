package org.gradientsync.core.collectives.shared;

import java.util.function.Consumer;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.collectives.messages.BlockReads;
import org.gradientsync.core.collectives.messages.CarriedTransfer;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Resources;

/**
 * The reducer for processes of one node, which read each other's buffers in place.
 *
 * <p>After the rendezvous it runs a {@link SharedPlan}: a {@link SharedAllReduce}, or reads of
 * blocks for a collective with an input and an output. It returns when no rank reads its memory any
 * more.
 *
 * <p>With each call, ranks announce where their buffers lie: the id of the memory and the offset in
 * it. If any rank's buffer lies in private memory (wrapped, or allocated when the memory file
 * system was full), all ranks reduce it by messages.
 *
 * <p>Small inputs, and small buffers to all-reduce, travel with the calls.
 */
public final class SharedMemoryReducer extends ForwardingReducer<MessageReducer> {
  /**
   * An all-reduce is carried up to this size. Each rank then adds all elements, and not only those
   * of its shard, which saves two waits for the others.
   */
  private static final int MAX_REDUCED = 2 << 10;

  private static final int MAX_REDUCED_OF_ALL = 16 << 10;

  private final ProcessGroup group;
  private final SharedMemoryRendezvous rendezvous;
  private final HostDevice device;
  private final NodeRanks nodeRanks;
  private final PlanCache<SharedPlan> plans;
  private final PlanCache<CarriedTransfer> carried;
  private final NodeBuffers buffers;
  private final Consumer<CollectiveCall> read = this::read;
  private final Consumer<CollectiveCall> runCarried = this::runCarried;
  private CarriedTransfer current; // of the call that is made, or null

  /** Each rank reads what it needs from all inputs. */
  private record SharedReads(NodeBuffers.Mapped inputs, BlockReads reads) implements SharedPlan {
    @Override
    public void run(ReduceOp op) {
      reads.run(op);
    }
  }

  public SharedMemoryReducer(
      String name,
      ProcessGroup group,
      SharedMemoryRendezvous rendezvous,
      HostDevice device,
      NodeMemory node) {
    super(new MessageReducer(name, group, device));
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.nodeRanks = new NodeRanks(group, group.ranks().all(), rendezvous, node);
    this.plans = new PlanCache<>(group);
    this.carried = new PlanCache<>(group);
    this.buffers = new NodeBuffers(rendezvous, device, node, group.rank());
  }

  @Override
  public void run(CollectiveCall call) {
    if (call.kind() == Kind.BROADCAST || call.kind().isMessage()) {
      other.run(call);
      return;
    }
    synchronized (group) {
      boolean small = isCarried(call);
      current = small ? carried(call) : null;
      rendezvous.carry(current);
      group.run(call, small ? runCarried : read);
    }
  }

  /** Whether the inputs travel with the calls; the same on all ranks whose calls match. */
  private boolean isCarried(CollectiveCall call) {
    int size = group.size();
    long bytes = CarriedTransfer.bytes(call, size);
    boolean small =
        call.kind() == Kind.ALL_REDUCE
            ? bytes <= MAX_REDUCED && bytes * size <= MAX_REDUCED_OF_ALL
            : bytes <= SharedMemoryRendezvous.PAYLOAD_BYTES;
    return size > 1 && bytes > 0 && small;
  }

  private CarriedTransfer carried(CollectiveCall call) {
    CarriedTransfer plan = carried.get(call);
    if (plan == null) {
      plan = new CarriedTransfer(device, rendezvous::payload, call, group.rank(), group.size());
      carried.put(call, plan);
    }
    return plan;
  }

  private void runCarried(CollectiveCall call) {
    current.run(rendezvous.slot(), call.op());
  }

  /** Reads the other ranks' buffers after the rendezvous, or leaves that to messages. */
  private void read(CollectiveCall call) {
    if (group.size() == 1 || call.blockCount(group.size()) == 0 || anyPrivateInput(call)) {
      other.move(call);
      return;
    }
    try {
      plan(call).run(call.op());
      nodeRanks.finishReading();
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw nodeRanks.failed((HostBuffer) (call.in() != null ? call.in() : call.out()), e);
    }
  }

  private boolean anyPrivateInput(CollectiveCall call) {
    boolean any = false;
    for (int peer = 0; peer < group.size(); peer++) {
      any |=
          call.kind().hasInput(peer, call.root()) && CallRecord.memoryId(rendezvous.call(peer)) < 0;
    }
    return any;
  }

  private SharedPlan plan(CollectiveCall call) {
    SharedPlan plan = plans.get(call);
    if (plan == null || !plan.inputs().isValid()) {
      plans.forget(call);
      int size = group.size();
      long count = call.blockCount(size) * call.kind().inputBlocks(size);
      NodeBuffers.Mapped inputs =
          buffers.map((HostBuffer) call.in(), call.buffer().type(), count, size);
      plan =
          call.kind() == Kind.ALL_REDUCE
              ? new SharedAllReduce(group, rendezvous, device, inputs)
              : new SharedReads(inputs, new BlockReads(device, inputs.all(), call, group.rank()));
      plans.put(call, plan);
    }
    return plan;
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(plans, carried, other);
    }
  }
}
