package org.gradientsync.core.collectives.messages;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerParts;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The reducer for every transport that can carry a device's memory: messages between pairs of
 * ranks, and additions on the device. {@link AllReducePlan}, {@link ReduceScatterPlan}, {@link
 * BroadcastPlan} and {@link TransferPlan} have the algorithms. A plan is made at a call's first run
 * and kept in a {@link PlanCache}.
 */
public final class MessageReducer implements Reducer {
  private static final int MIN_CHUNK_BYTES = 256;
  private static final int MIN_SHRUNK_BYTES = 4 << 10;

  /** Scratch memory holds at most this many full chunks; with more ranks, chunks are smaller. */
  private static final int SCRATCH_CHUNKS = 64;

  private final String name;
  private final ProcessGroup group;
  private final BackendDevice device;
  private final int chunkBytes;
  private final Map<DataType, DeviceBuffer> scratch = new EnumMap<>(DataType.class);
  private final List<DeviceBuffer> outgrown =
      new ArrayList<>(); // messages of older plans use these
  private final PlanCache<Plan> plans;
  private final PlanCache<CarriedTransfer> carried;
  private final Consumer<CollectiveCall> move = this::move;
  private final Consumer<CollectiveCall> addCarried = this::addCarried;
  private final Consumer<List<CollectiveCall>> exchangeRound = this::exchangeRound;
  private final Consumer<CollectiveCall> takeSums = this::takeSums;
  private final Consumer<CollectiveCall> runCarried = this::runCarried;
  private final List<TransferPlan> moves = new ArrayList<>(); // of the last round of messages
  private CarriedAllReduce carriedSum; // null until needed
  private NodeSums summed; // null until needed

  /**
   * @param group the ranks; their transport carries the device's memory
   * @param device the device of the buffers, which does the arithmetic
   */
  public MessageReducer(String name, RankGroup group, BackendDevice device) {
    this(name, group, device, ReducerParts.HOST_CHUNK_BYTES);
  }

  /**
   * @param group the ranks; their transport carries the device's memory
   * @param device the device of the buffers, which does the arithmetic
   * @param chunkBytes the size of a message, the same on all ranks; a multiple of 8
   */
  public MessageReducer(String name, RankGroup group, BackendDevice device, int chunkBytes) {
    this.name = name;
    this.group = ProcessGroup.of(group);
    this.device = device;
    this.chunkBytes = chunkBytes;
    this.plans = new PlanCache<>(group);
    carried = new PlanCache<>(group);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void run(CollectiveCall call) {
    synchronized (group) {
      run(group.parts().calls().origin(), call, true);
    }
  }

  /**
   * As above, for the communicator.
   *
   * @param origin of the call
   * @param fromSync whether all elements may travel with the calls
   */
  void run(Origin origin, CollectiveCall call, boolean fromSync) {
    synchronized (group) {
      MessageRendezvous rendezvous = group.parts().arrivals().byMessages();
      boolean carries = rendezvous != null && rendezvous.calls().carries();
      if (!carries || !(device instanceof HostDevice) || call.kind().isMessage()) {
        group.run(origin, call, move);
      } else if (fromSync && isSummed(call, rendezvous)) {
        summed.begin(call.in(), call.op());
        group.run(origin, call, takeSums);
      } else if (call.kind() == Kind.ALL_REDUCE) {
        allReduce(origin, call, rendezvous);
      } else if (fromSync && isCarried(call, rendezvous)) {
        rendezvous.carry(carried(call, rendezvous));
        group.run(origin, call, runCarried);
      } else {
        group.run(origin, call, move);
      }
    }
  }

  /** Whether sums travel with the calls; the same on all ranks whose calls match. */
  private boolean isSummed(CollectiveCall call, MessageRendezvous rendezvous) {
    return (call.kind() == Kind.ALL_REDUCE || call.kind() == Kind.REDUCE_SCATTER)
        && rendezvous.calls().nodeSize() > 0
        && sums(rendezvous).fits(call.in());
  }

  private void allReduce(Origin origin, CollectiveCall call, MessageRendezvous rendezvous) {
    if (carriedAllReduce(rendezvous).fits(call.in())) {
      carriedSum.begin(call.in());
      group.run(origin, call, addCarried);
    } else {
      group.run(origin, call, move);
    }
  }

  /** Whether the inputs travel with the calls; the same on all ranks whose calls match. */
  private boolean isCarried(CollectiveCall call, MessageRendezvous rendezvous) {
    long bytes = CarriedTransfer.bytes(call, group.size());
    return bytes > 0 && bytes <= rendezvous.calls().payloadBytes();
  }

  private CarriedTransfer carried(CollectiveCall call, MessageRendezvous rendezvous) {
    CarriedTransfer plan = carried.get(call);
    if (plan == null) {
      plan =
          new CarriedTransfer(
              (HostDevice) device, rendezvous.calls()::payload, call, group.rank(), group.size());
      carried.put(call, plan);
    }
    return plan;
  }

  private void runCarried(CollectiveCall call) {
    MessageRendezvous rendezvous = group.parts().arrivals().byMessages();
    CarriedTransfer plan = carried(call, rendezvous);
    if (rendezvous.haveAllCarried(plan.bytes())) {
      plan.run(rendezvous.slot(), call.op());
    } else {
      move(call);
    }
  }

  /** Moves the elements of a call after its rendezvous. The caller holds the lock. */
  public void move(CollectiveCall call) {
    if (call.blockCount(group.size()) == 0) {
      return;
    }
    if (group.size() > 1) {
      plan(call).run(call);
    } else if (!overlap(call.in(), call.out())) {
      device.copy(call.in(), call.out());
    }
  }

  private static boolean overlap(DeviceBuffer in, DeviceBuffer out) {
    return in == out || ((AbstractDeviceBuffer) in).overlaps((AbstractDeviceBuffer) out);
  }

  private Plan plan(CollectiveCall call) {
    Plan plan = plans.get(call);
    if (plan == null) {
      plan = newPlan(call);
      plans.put(call, plan);
    }
    return plan;
  }

  private Plan newPlan(CollectiveCall call) {
    return switch (call.kind()) {
      case ALL_REDUCE -> allReduce(call.in());
      case REDUCE_SCATTER, REDUCE -> reduceScatter(call);
      case BROADCAST -> new BroadcastPlan(group, device, call);
      default -> TransferPlan.of(group, device, call);
    };
  }

  /** For small buffers. */
  private CarriedAllReduce carriedAllReduce(MessageRendezvous rendezvous) {
    if (carriedSum == null || carriedSum.rendezvous() != rendezvous) {
      Resources.closeAll(carriedSum);
      carriedSum =
          new CarriedAllReduce(rendezvous, (HostDevice) device, group.rank(), group.size());
    }
    return carriedSum;
  }

  /** For small buffers whose sums may be in any order. */
  private NodeSums sums(MessageRendezvous rendezvous) {
    if (summed == null || summed.rendezvous() != rendezvous) {
      Resources.closeAll(summed);
      summed = new NodeSums(rendezvous, (HostDevice) device, group.size());
    }
    return summed;
  }

  private void takeSums(CollectiveCall call) {
    if (summed.hasCome()) {
      summed.finish(call, group.rank());
    } else {
      move(call);
    }
  }

  private void addCarried(CollectiveCall call) {
    if (carriedSum.haveCome()) {
      carriedSum.finish(call.op());
    } else {
      move(call);
    }
  }

  private AllReducePlan allReduce(DeviceBuffer buffer) {
    Shards shards = new Shards(buffer.count(), group.size(), chunk(buffer));
    long chunksAtATime = Math.min(AllReducePlan.DEPTH, shards.chunks());
    DeviceBuffer room = scratch(buffer.type(), chunksAtATime * group.size() * shards.chunk());
    return new AllReducePlan(group, device, buffer, shards, room);
  }

  private ReduceScatterPlan reduceScatter(CollectiveCall call) {
    DeviceBuffer in = call.in();
    Shards shards = new Shards(in.count(), group.size(), chunk(in));
    DeviceBuffer room = scratch(in.type(), ReduceScatterPlan.scratchCount(shards));
    return new ReduceScatterPlan(group, device, call, shards, room);
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      group.meetToPrepare(call); // the first call makes the plan
    }
  }

  @Override
  public void exchange(List<CollectiveCall> messages) {
    group.exchange(messages, exchangeRound);
  }

  /** All ranks move the same piece of all messages before the next one. */
  private void exchangeRound(List<CollectiveCall> round) {
    boolean keeps = round.size() <= PlanCache.MAX / 2; // otherwise they evict each other
    moves.clear();
    try {
      for (int i = 0; i < round.size(); i++) {
        CollectiveCall message = round.get(i);
        device.await(message.buffer());
        moves.add(keeps ? (TransferPlan) plan(message) : TransferPlan.of(group, device, message));
      }
      move();
    } finally {
      if (!keeps) {
        Resources.closeAll(moves);
      }
    }
  }

  private void move() {
    int pieces = 0;
    for (int i = 0; i < moves.size(); i++) {
      pieces = Math.max(pieces, moves.get(i).pieces());
    }
    for (int piece = 0; piece < pieces; piece++) {
      for (int i = 0; i < moves.size(); i++) {
        if (piece < moves.get(i).pieces()) {
          moves.get(i).start(piece);
        }
      }
      for (int i = 0; i < moves.size(); i++) {
        if (piece < moves.get(i).pieces()) {
          moves.get(i).await(piece);
        }
      }
    }
  }

  private long chunk(DeviceBuffer buffer) {
    return chunk(buffer.count(), buffer.type().sizeInBytes(), group.size(), chunkBytes);
  }

  /**
   * The number of elements in a chunk: the maximum of a message, or a smaller power of two that is
   * enough for a shard. Every rank holds scratch memory for two chunks of each rank.
   *
   * @param element the size of an element
   * @param chunkBytes the size of a message of few ranks
   */
  public static long chunk(long count, int element, int ranks, int chunkBytes) {
    int most = maxChunkBytes(chunkBytes, ranks) / element;
    int least = Math.min(most, MIN_CHUNK_BYTES / element);
    long shard = (count + ranks - 1) / ranks;
    return Math.min(most, Math.max(least, Long.highestOneBit(Math.max(1, shard - 1)) << 1));
  }

  /** The maximum size of a message: less with many ranks, so that scratch memory stays bounded. */
  static int maxChunkBytes(int chunkBytes, int ranks) {
    long each = (long) chunkBytes * SCRATCH_CHUNKS / AllReducePlan.DEPTH / ranks;
    return (int)
        Math.min(chunkBytes, Math.max(MIN_SHRUNK_BYTES, Long.highestOneBit(Math.max(1, each))));
  }

  private DeviceBuffer scratch(DataType type, long count) {
    DeviceBuffer room = scratch.get(type);
    if (room == null || room.count() < count) {
      DeviceBuffer larger = Unclosed.exempt(device.allocate(type, count));
      device.await(larger); // it must be zeroed before messages arrive
      if (room != null) {
        outgrown.add(room);
      }
      scratch.put(type, larger);
      return larger;
    }
    return room;
  }

  @Override
  public void close() {
    synchronized (group) {
      Resources.closeAll(plans, carried, carriedSum, summed);
      scratch.values().forEach(DeviceBuffer::close);
      scratch.clear();
      outgrown.forEach(DeviceBuffer::close);
      outgrown.clear();
    }
  }
}
