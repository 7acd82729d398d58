package org.gradientsync.core.collectives.nodes;

import java.util.EnumMap;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.RankLostException;
import org.gradientsync.SumOrder;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.collectives.ForwardingReducer;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.collectives.shared.NodeMates;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.NodesRendezvous;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The reducer for processes on several nodes, with consecutive ranks on each node. Ranks of one
 * node read each other's buffers in place; a running sum passes from node to node ({@link
 * RunningSumPlan}).
 *
 * <p>Small buffers, and buffers that lie in private memory on any rank, are reduced by messages
 * between all ranks.
 */
public final class TwoLevelReducer extends ForwardingReducer<MessageReducer> {
  /** Smaller buffers are reduced by messages between all ranks, which takes less time for them. */
  static final int MIN_BYTES = 16 << 10;

  /** Up to this size, MPI sends a message without first waiting for the receiver to be ready. */
  static final int MAX_CHUNK_BYTES = 32 << 10;

  private static final int MIN_CHUNK_BYTES = 4 << 10;
  private static final int MAX_SCRATCH_BYTES = 4 << 20;
  private static final int CHUNKS = 16; // enough to keep all nodes busy at the same time

  private final String name;
  private final ProcessGroup group;
  private final NodesRendezvous rendezvous;
  private final HostDevice device;
  private final NodeLayout layout;
  private final NodeMates mates;
  private final NodeBuffers buffers;
  private final PlanCache<RunningSumPlan> plans;
  private final Consumer<CollectiveCall> reduce = this::reduce;
  private final SumOrder order;
  private final int minBytes;
  private final int chunkBytes;
  private final Map<DataType, DeviceBuffer> scratch = new EnumMap<>(DataType.class);
  private long published; // chunks of each rank of this node

  TwoLevelReducer(
      String name,
      ProcessGroup group,
      NodesRendezvous rendezvous,
      HostDevice device,
      NodeLayout layout,
      NodeMemory node,
      SumOrder order,
      int minBytes,
      int chunkBytes) {
    super(new MessageReducer(name, group, device));
    this.name = name;
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.layout = layout;
    this.order = order;
    this.minBytes = minBytes;
    this.chunkBytes = chunkBytes;
    mates = new NodeMates(group, layout.ranksOf(layout.node()), rendezvous.node(), node);
    buffers = new NodeBuffers(rendezvous.node(), device, node, layout.localRank());
    plans = new PlanCache<>(group);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void run(CollectiveCall call) {
    if (call.kind() != Kind.ALL_REDUCE
        || call.in().count() == 0
        || call.in().sizeInBytes() < minBytes) {
      other.run(call);
    } else {
      group.run(call, reduce);
    }
  }

  private void reduce(CollectiveCall call) {
    if (!rendezvous.canAllBeMapped()) {
      other.move(call);
      return;
    }
    try {
      published = plan(call).run(call.op(), published);
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw mates.broken((HostBuffer) call.in(), e);
    }
  }

  private RunningSumPlan plan(CollectiveCall call) {
    RunningSumPlan plan = plans.get(call);
    if (plan == null || !plan.isValid()) {
      plans.forget(call);
      HostBuffer own = (HostBuffer) call.in();
      Shards shards = new Shards(own.count(), layout.fewest(), chunk(own));
      NodeBuffers.Mapped mapped =
          buffers.map(own, own.type(), own.count(), layout.ranksOf(layout.node()).size());
      plan =
          new RunningSumPlan(
              group, device, layout, order, mates, rendezvous.node(), mapped, shards, scratch(own));
      plans.put(call, plan);
    }
    return plan;
  }

  private long chunk(HostBuffer buffer) {
    int element = buffer.type().accumulator().sizeInBytes();
    return chunk(buffer.count(), element, layout.fewest(), maxChunk()) / element;
  }

  private long maxChunk() {
    return maxChunk(order, layout.nodes(), chunkBytes);
  }

  /**
   * The size of a chunk's running sum.
   *
   * @param element the size of an element of the sum
   * @param shards the number of carriers of a node
   * @param most the maximum size
   */
  static long chunk(long count, int element, int shards, long most) {
    long shard = (count - 1) / shards + 1;
    long bytes = Long.highestOneBit(Math.max(1, shard * element / CHUNKS));
    return Math.min(most, Math.max(MIN_CHUNK_BYTES, bytes));
  }

  /** The maximum size of a chunk's running sum: less on many nodes, whose carriers hold more. */
  static long maxChunk(SumOrder order, int nodes, int chunkBytes) {
    long share = Long.highestOneBit(MAX_SCRATCH_BYTES / RunningSumPlan.slots(order, nodes));
    return Math.min(chunkBytes, Math.max(MIN_CHUNK_BYTES, share));
  }

  private DeviceBuffer scratch(HostBuffer buffer) {
    int slots = RunningSumPlan.slots(order, layout.nodes());
    return scratch.computeIfAbsent(
        buffer.type().accumulator(),
        type -> Unclosed.exempt(device.allocate(type, slots * maxChunk() / type.sizeInBytes())));
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(plans, other);
      scratch.values().forEach(DeviceBuffer::close);
      scratch.clear();
    }
  }
}
