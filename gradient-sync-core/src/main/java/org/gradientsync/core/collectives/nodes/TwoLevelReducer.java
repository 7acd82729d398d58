package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.RankLostException;
import org.gradientsync.SumOrder;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.collectives.messages.CarriedTransfer;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.collectives.nodes.TwoLevelSizes.Way;
import org.gradientsync.core.collectives.shared.NodeBuffers;
import org.gradientsync.core.collectives.shared.NodeRanks;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The reducer for processes on several nodes, with consecutive ranks on each node. Ranks of one
 * node read each other's buffers in place. Between nodes, a running sum passes from one to the next
 * ({@link RunningSumPlan}), or nodes exchange contributions ({@link ExchangePlan}) or sums ({@link
 * HalvingPlan}) of blocks, or whole sums ({@link DirectSumsPlan}); {@link TwoLevelSizes} decide.
 *
 * <p>A broadcast takes a {@link BroadcastTreesPlan}. An all-gather ({@link AllGatherPlan}, {@link
 * GatherRoundsPlan}), a reduce-scatter ({@link ScatteredSumPlan}) and an all-to-all of small blocks
 * ({@link AllToAllPlan}) need equally many ranks on each node; with many nodes, the last two take
 * rounds, too.
 *
 * <p>The smallest buffers travel with the calls. Buffers that lie in private memory on any rank,
 * and other calls, go by messages between all ranks.
 */
public final class TwoLevelReducer extends ForwardingReducer<MessageReducer> {
  private final ProcessGroup group;
  private final MessageRendezvous rendezvous;
  private final HostDevice device;
  private final NodeLayout layout;
  private final int carriers; // of each node
  private final boolean even; // whether all ranks carry
  private final TwoLevelRanks ranks;
  private final NodeBuffers buffers;
  private final PlanCache<CarrierPlan> plans;
  private final PlanCache<Chosen> scatters;
  private final Consumer<CollectiveCall> reduce = this::reduce;
  private final SumOrder order;
  private final TwoLevelSizes sizes;
  private final Map<Way, Map<DataType, DeviceBuffer>> scratch = new EnumMap<>(Way.class);
  private final Map<DataType, DeviceBuffer> contributions = new EnumMap<>(DataType.class);
  private final List<DeviceBuffer> outgrown = new ArrayList<>();
  private long published; // chunks of each rank of this node

  TwoLevelReducer(
      String name,
      ProcessGroup group,
      MessageRendezvous rendezvous,
      HostDevice device,
      NodeLayout layout,
      NodeMemory node,
      SumOrder order,
      TwoLevelSizes sizes) {
    super(new MessageReducer(name, group, device));
    this.group = group;
    this.rendezvous = rendezvous;
    this.device = device;
    this.layout = layout;
    carriers = layout.fewest();
    even = carriers == layout.most();
    this.order = order;
    this.sizes = sizes;
    NodeRanks nodeRanks =
        new NodeRanks(group, layout.ranksOf(layout.node()), rendezvous.node(), node);
    ranks = new TwoLevelRanks(group, device, layout, nodeRanks, rendezvous.node());
    buffers = new NodeBuffers(rendezvous.node(), device, node, layout.localRank());
    plans = new PlanCache<>(group);
    scatters = new PlanCache<>(group);
  }

  @Override
  public void run(CollectiveCall call) {
    synchronized (group) {
      if (!isForNodes(call)) {
        other.run(call);
        return;
      }
      rendezvous.announce(call.kind() == Kind.ALL_GATHER ? shared(call) : null);
      group.run(call, reduce);
    }
  }

  /**
   * Whether a call has a plan of its own between nodes; the same on all ranks whose calls match.
   */
  private boolean isForNodes(CollectiveCall call) {
    if (call.kind() == Kind.ALL_REDUCE) {
      return call.in().count() > 0 && way(call.in()) != Way.CALLS;
    }
    if (!even && call.kind() != Kind.BROADCAST) {
      return false;
    }
    if (call.kind() == Kind.REDUCE_SCATTER) {
      return call.in().count() > 0 && scatter(call) != Way.CALLS;
    }
    long bytes = CarriedTransfer.bytes(call, group.size());
    if (bytes <= rendezvous.calls().payloadBytes()) {
      return false;
    }
    return switch (call.kind()) {
      case BROADCAST, ALL_GATHER -> true;
      case ALL_TO_ALL -> TwoLevelSizes.collects(bytes / group.size());
      default -> false;
    };
  }

  /** The buffer of a call that the other ranks of the node read. */
  private static HostBuffer shared(CollectiveCall call) {
    return (HostBuffer) (call.kind() == Kind.ALL_GATHER ? call.out() : call.in());
  }

  private void reduce(CollectiveCall call) {
    boolean straight = call.kind() == Kind.REDUCE_SCATTER && scatter(call) == Way.STRAIGHT;
    if (straight || !rendezvous.canAllBeMapped()) {
      other.move(call);
      return;
    }
    try {
      published = plan(call).run(call.op(), published);
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw ranks.nodeRanks().failed(shared(call), e);
    }
  }

  private Way way(DeviceBuffer buffer) {
    DataType type = buffer.type();
    return sizes.way(
        order,
        layout.nodes(),
        buffer.count(),
        type.sizeInBytes(),
        type.accumulator().sizeInBytes(),
        group.size(),
        carriers);
  }

  /** The way of a reduce-scatter. */
  private Way scatter(CollectiveCall call) {
    Chosen chosen = scatters.get(call);
    if (chosen == null) {
      long count = call.in().count();
      DataType type = call.in().type();
      int sum = type.accumulator().sizeInBytes();
      int nodes = layout.nodes();
      chosen = new Chosen(sizes.scatter(order, nodes, count, type.sizeInBytes(), sum, carriers));
      scatters.put(call, chosen);
    }
    return chosen.way();
  }

  /** What has been chosen for a call, so that it is chosen once. */
  private record Chosen(Way way) implements AutoCloseable {
    @Override
    public void close() {
      // nothing to close
    }
  }

  private CarrierPlan plan(CollectiveCall call) {
    CarrierPlan plan = plans.get(call);
    if (plan == null || !plan.isValid()) {
      plans.forget(call);
      plan = newPlan(call);
      plans.put(call, plan);
    }
    return plan;
  }

  private CarrierPlan newPlan(CollectiveCall call) {
    int localSize = layout.ranksOf(layout.node()).size();
    HostBuffer own = shared(call);
    NodeBuffers.Mapped mapped = buffers.map(own, own.type(), own.count(), localSize);
    long block = call.blockCount(group.size());
    int element = own.type().sizeInBytes();
    return switch (call.kind()) {
      case BROADCAST -> {
        Shards chunks = sizes.broadcast(layout.nodes(), own.count(), element, carriers);
        yield new BroadcastTreesPlan(ranks, mapped, chunks, call.root());
      }
      case ALL_GATHER -> {
        HostBuffer in = (HostBuffer) call.in();
        if (TwoLevelSizes.gathersInRounds(layout.nodes(), block * element, carriers)) {
          Shards blocks = new Shards(block * carriers, carriers, Shards.WHOLE);
          DeviceBuffer room = contributions(own.type(), layout.nodes() * block);
          yield new GatherRoundsPlan(ranks, mapped, blocks, in, room);
        }
        yield new AllGatherPlan(ranks, mapped, sizes.pieces(block, element, carriers), in);
      }
      case ALL_TO_ALL -> {
        Shards input = new Shards(own.count(), carriers, own.count() / carriers);
        if (TwoLevelSizes.passesBlocksOn(layout.nodes(), input, element)) {
          yield exchange(own, mapped, input, call.out(), false);
        }
        Shards blocks = new Shards(block * carriers, carriers, Shards.WHOLE);
        long count = AllToAllPlan.scratchCount(layout.nodes(), blocks);
        DeviceBuffer room = contributions(own.type(), count);
        yield new AllToAllPlan(ranks, mapped, blocks, room, call.out());
      }
      case REDUCE_SCATTER ->
          switch (scatter(call)) {
            case HALVING -> {
              Shards columns = sizes.columns(own.count(), sum(own), carriers);
              yield halving(own, mapped, ofBlocks(columns), call.out());
            }
            case EXCHANGE -> {
              Shards columns = sizes.exchanged(own.count(), element, carriers);
              yield exchange(own, mapped, ofBlocks(columns), call.out(), true);
            }
            default -> scatteredSum(call, mapped);
          };
      default -> allReduce(own, mapped);
    };
  }

  private Shards ofBlocks(Shards columns) {
    return TwoLevelSizes.ofBlocks(columns, layout.nodes());
  }

  /** The size of an element's sum. */
  private static int sum(HostBuffer buffer) {
    return buffer.type().accumulator().sizeInBytes();
  }

  private ScatteredSumPlan scatteredSum(CollectiveCall call, NodeBuffers.Mapped mapped) {
    DataType type = call.in().type();
    DataType sum = type.accumulator();
    int nodes = layout.nodes();
    Shards chunks = sizes.scattered(order, nodes, call.out().count(), sum.sizeInBytes(), carriers);
    return new ScatteredSumPlan(
        ranks,
        order,
        mapped,
        chunks,
        sums(sum),
        contributions(type, ScatteredSumPlan.roundedCount(order, nodes, chunks)),
        call.out());
  }

  /** Room for running sums. */
  private DeviceBuffer sums(DataType type) {
    int slots = SumPlan.slots(order, layout.nodes());
    return scratch(Way.RUNNING_SUM, type, slots * sizes.maxChunk(order, layout.nodes()));
  }

  private CarrierPlan allReduce(HostBuffer own, NodeBuffers.Mapped mapped) {
    DataType type = own.type().accumulator();
    int sum = sum(own);
    return switch (way(own)) {
      case DIRECT_SUMS -> {
        Shards chunks = sizes.directSums(own.count(), sum, carriers);
        DeviceBuffer room =
            contributions(type, DirectSumsPlan.scratchCount(layout.nodes(), chunks));
        yield new DirectSumsPlan(ranks, mapped, chunks, room);
      }
      case HALVING -> halving(own, mapped, sizes.columns(own.count(), sum, carriers), null);
      case EXCHANGE -> {
        Shards columns = sizes.exchanged(own.count(), own.type().sizeInBytes(), carriers);
        yield exchange(own, mapped, columns, null, true);
      }
      default -> {
        Shards chunks = sizes.chunks(order, layout.nodes(), own.count(), sum, carriers);
        yield new RunningSumPlan(ranks, order, mapped, chunks, sums(type));
      }
    };
  }

  private HalvingPlan halving(
      HostBuffer own, NodeBuffers.Mapped mapped, Shards columns, DeviceBuffer out) {
    long count = HalvingPlan.scratchCount(sizes.maxColumn() / sum(own), layout.nodes());
    DataType type = own.type().accumulator();
    DeviceBuffer room = scratch(Way.HALVING, type, ColumnSteps.SLOTS * count * sum(own));
    return new HalvingPlan(ranks, mapped, columns, out, room);
  }

  private ExchangePlan exchange(
      HostBuffer own, NodeBuffers.Mapped mapped, Shards columns, DeviceBuffer out, boolean adds) {
    ExchangeRounds rounds =
        TwoLevelSizes.exchange(layout.nodes(), columns, own.type().sizeInBytes());
    long count = ExchangePlan.scratchCount(columns, rounds, layout.most());
    DeviceBuffer room = contributions(own.type(), count);
    return new ExchangePlan(ranks, mapped, columns, out, adds, rounds, room);
  }

  /** Room for elements on their way, which grows with the buffers. */
  private DeviceBuffer contributions(DataType type, long count) {
    DeviceBuffer room = contributions.get(type);
    if (room == null || room.count() < count) {
      if (room != null) {
        outgrown.add(room); // older plans use it
      }
      room = Unclosed.exempt(device.allocate(type, Long.highestOneBit(count) << 1));
      contributions.put(type, room);
    }
    return room;
  }

  private DeviceBuffer scratch(Way way, DataType type, long bytes) {
    return scratch
        .computeIfAbsent(way, any -> new EnumMap<>(DataType.class))
        .computeIfAbsent(
            type, any -> Unclosed.exempt(device.allocate(type, bytes / type.sizeInBytes())));
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(plans, scatters, other);
      outgrown.forEach(DeviceBuffer::close);
      contributions.values().forEach(DeviceBuffer::close);
      scratch.values().forEach(ofWay -> ofWay.values().forEach(DeviceBuffer::close));
      scratch.clear();
    }
  }
}
