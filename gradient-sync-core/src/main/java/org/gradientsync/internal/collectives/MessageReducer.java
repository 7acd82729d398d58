package org.gradientsync.internal.collectives;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.internal.host.HostDevice;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.matching.InlinePayload;
import org.gradientsync.internal.matching.NodesRendezvous;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The reducer for every transport that can carry a device's memory: messages between pairs of
 * ranks, and additions on the device. {@link AllReducePlan} describes the algorithm.
 *
 * <p>A buffer's plan is made at its first all-reduce and kept in a {@link PlanCache}.
 */
public final class MessageReducer implements Reducer {
  static final int HOST_CHUNK_BYTES = 256 << 10; // fits in the second-level cache
  private static final int MIN_CHUNK_BYTES = 256;
  private static final int MIN_SHRUNK_BYTES = 4 << 10;

  /** Scratch memory holds at most this many full chunks; with more ranks, chunks are smaller. */
  private static final int SCRATCH_CHUNKS = 64;

  private static final Object BROADCAST = new Object(); // stands for these calls among the plans

  private final String name;
  private final ProcessGroup group;
  private final BackendDevice device;
  private final int chunkBytes;
  private final Map<DataType, DeviceBuffer> scratch = new EnumMap<>(DataType.class);
  private final List<DeviceBuffer> outgrown =
      new ArrayList<>(); // messages of older plans use these
  private final PlanCache<AllReducePlan> plans;
  private final CollectivePlans<TransferPlan> transfers;
  private final CollectivePlans<ReduceScatterPlan> reduceScatters;
  private GatheredSums gathered; // null until needed

  /**
   * @param name its name
   * @param group the ranks; their transport carries the device's memory
   * @param device the device of the buffers, which does the arithmetic
   */
  public MessageReducer(String name, RankGroup group, BackendDevice device) {
    this(name, group, device, HOST_CHUNK_BYTES);
  }

  /**
   * @param name its name
   * @param group the ranks; their transport carries the device's memory
   * @param device the device of the buffers, which does the arithmetic
   * @param chunkBytes the size of a message, the same on all ranks; a multiple of 8
   */
  public MessageReducer(String name, RankGroup group, BackendDevice device, int chunkBytes) {
    this.name = name;
    this.group = ProcessGroup.of(group);
    this.device = device;
    this.chunkBytes = chunkBytes;
    this.plans = new PlanCache<>(group, AllReducePlan::close);
    this.transfers = new CollectivePlans<>(group);
    this.reduceScatters = new CollectivePlans<>(group);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    allReduce(buffer, op, Call.Kind.ALL_REDUCE);
  }

  void allReduce(DeviceBuffer buffer, ReduceOp op, Call.Kind kind) {
    synchronized (group) {
      GatheredSums sums = sums();
      if (sums != null && sums.fits(buffer)) {
        gather(sums, buffer, op, kind);
        group.finished();
        return;
      }
      InlinePayload payload = load(buffer);
      group.matcher().meet(kind, buffer, op, payload);
      if (group.size() > 1 && buffer.count() > 0) {
        reduce(buffer, op, payload != null);
      }
      group.finished();
    }
  }

  /** For small buffers; null if the ranks do not meet over several nodes. */
  private GatheredSums sums() {
    NodesRendezvous rendezvous = group.arrivals().overNodes();
    if (rendezvous == null || !(device instanceof HostDevice host)) {
      return null;
    }
    if (gathered == null || gathered.rendezvous() != rendezvous) {
      Resources.closeAll(gathered);
      gathered = new GatheredSums(rendezvous, host, group.rank(), group.size());
    }
    return gathered;
  }

  private void gather(GatheredSums sums, DeviceBuffer buffer, ReduceOp op, Call.Kind kind) {
    sums.begin(buffer);
    group.matcher().meet(kind, buffer, op, Call.NO_ROOT);
    if (!sums.haveCome()) {
      reduce(buffer, op, false);
      return;
    }
    try {
      sums.finish(op);
    } catch (RuntimeException | Error e) {
      throw group.lost("the call failed in the middle: " + e, e);
    }
  }

  /** The payload to send with the call, or null. */
  private InlinePayload load(DeviceBuffer buffer) {
    AllReducePlan plan = plans.get(buffer);
    if (plan == null || group.isBroken()) {
      return null;
    }
    try {
      return plan.load(buffer);
    } catch (RuntimeException | Error e) {
      throw group.lost("the call failed before it began: " + e, e);
    }
  }

  /** Reduces a non-empty buffer after a rendezvous of several ranks. The caller holds the lock. */
  void reduceAfterRendezvous(DeviceBuffer buffer, ReduceOp op) {
    reduce(buffer, op, false);
  }

  private void reduce(DeviceBuffer buffer, ReduceOp op, boolean sentInline) {
    try {
      plan((AbstractDeviceBuffer) buffer).run(buffer, op, sentInline);
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw group.lost("the call failed in the middle: " + e, e);
    }
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    synchronized (group) {
      group.ranks().require(root, "root");
      group.meetForBroadcast(buffer, root);
      if (group.size() > 1 && buffer.count() > 0) {
        broadcastPlan(buffer, root).run(buffer, null);
      }
      group.finished();
    }
  }

  private TransferPlan broadcastPlan(DeviceBuffer buffer, int root) {
    TransferPlan plan = transfers.get(BROADCAST, buffer, null, root);
    if (plan == null) {
      plan = TransferPlan.ofBroadcast(group, device, buffer, root);
      transfers.put(BROADCAST, buffer, null, root, plan);
    }
    return plan;
  }

  @Override
  public void register(DeviceBuffer buffer) {
    synchronized (group) {
      group.meetForRegistration(buffer); // the first call prepares so little that it may do it
      group.finished();
    }
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    synchronized (group) {
      group.meetFor(collective, in, out, op, root);
      runAfterRendezvous(collective, in, out, op, root);
      group.finished();
    }
  }

  /** For the communicator, whose calls have other names. */
  void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op, Call.Kind kind) {
    synchronized (group) {
      group.matcher().meet(kind, in, op, Call.NO_ROOT);
      runAfterRendezvous(Collective.REDUCE_SCATTER, in, out, op, RankGroup.NO_RANK);
      group.finished();
    }
  }

  /** Runs a collective after its rendezvous. The caller holds the lock. */
  void runAfterRendezvous(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (collective.blockCount(in, out, group.size()) == 0) {
      return;
    }
    try {
      if (!collective.reduces()) {
        transfer(collective, in, out, root).run(in, out);
      } else if (group.size() > 1) {
        reduceScatter(collective, in, out, root).run(out, op);
      } else if (!((AbstractDeviceBuffer) in).overlaps((AbstractDeviceBuffer) out)) {
        device.copy(in, out);
      }
    } catch (RankLostException e) {
      throw e;
    } catch (RuntimeException | Error e) {
      throw group.lost("the call failed in the middle: " + e, e);
    }
  }

  private TransferPlan transfer(
      Collective collective, DeviceBuffer in, DeviceBuffer out, int root) {
    TransferPlan plan = transfers.get(collective, in, out, root);
    if (plan == null) {
      plan = TransferPlan.of(group, device, collective, in, out, root);
      transfers.put(collective, in, out, root, plan);
    }
    return plan;
  }

  private ReduceScatterPlan reduceScatter(
      Collective collective, DeviceBuffer in, DeviceBuffer out, int root) {
    ReduceScatterPlan plan = reduceScatters.get(collective, in, out, root);
    if (plan == null) {
      Shards shards = new Shards(in.count(), group.size(), chunk(in));
      DeviceBuffer room = scratch(in.type(), ReduceScatterPlan.scratchCount(shards));
      plan = new ReduceScatterPlan(group, device, in, out, root, shards, room);
      reduceScatters.put(collective, in, out, root, plan);
    }
    return plan;
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    message(buffer, peer, true);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    message(buffer, peer, false);
  }

  private TransferPlan messagePlan(DeviceBuffer buffer, int peer, boolean sends) {
    TransferPlan plan = transfers.get(sends, buffer, null, peer);
    if (plan == null) {
      plan = TransferPlan.ofMessage(group, device, buffer, peer, sends);
      transfers.put(sends, buffer, null, peer, plan);
    }
    return plan;
  }

  @Override
  public void exchange(List<PeerMessage> messages) {
    synchronized (group) {
      MismatchedCallException failure = null;
      for (List<PeerMessage> round : MessageRounds.of(messages)) {
        MismatchedCallException mismatch = group.meetForMessages(round);
        failure = failure == null ? mismatch : failure;
        try {
          exchangeRound(round);
        } catch (RankLostException e) {
          throw e;
        } catch (RuntimeException | Error e) {
          throw group.lost("the call failed in the middle: " + e, e);
        }
        group.finished();
      }
      if (failure != null) {
        throw failure;
      }
    }
  }

  /** All ranks move the same piece of all messages before the next one. */
  private void exchangeRound(List<PeerMessage> round) {
    boolean keeps = round.size() <= CollectivePlans.MAX / 2; // otherwise they evict each other
    List<TransferPlan> moves = new ArrayList<>();
    try {
      for (PeerMessage message : round) {
        device.await(message.buffer());
        moves.add(
            keeps
                ? messagePlan(message.buffer(), message.peer(), message.sends())
                : TransferPlan.ofMessage(
                    group, device, message.buffer(), message.peer(), message.sends()));
      }
      move(moves);
    } finally {
      if (!keeps) {
        Resources.closeAll(moves);
      }
    }
  }

  private static void move(List<TransferPlan> moves) {
    int pieces = moves.stream().mapToInt(TransferPlan::pieces).max().orElse(0);
    for (int piece = 0; piece < pieces; piece++) {
      for (TransferPlan plan : moves) {
        if (piece < plan.pieces()) {
          plan.start(piece);
        }
      }
      for (TransferPlan plan : moves) {
        if (piece < plan.pieces()) {
          plan.await(piece);
        }
      }
    }
  }

  private void message(DeviceBuffer buffer, int peer, boolean sends) {
    synchronized (group) {
      group.meetForMessage(buffer, peer, sends);
      try {
        messagePlan(buffer, peer, sends).run(buffer, null);
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        throw group.lost("the call failed in the middle: " + e, e);
      }
      group.finished();
    }
  }

  private AllReducePlan plan(AbstractDeviceBuffer buffer) {
    AllReducePlan plan = plans.get(buffer);
    if (plan == null) {
      Shards shards = new Shards(buffer.count(), group.size(), chunk(buffer));
      long chunksAtATime = Math.min(AllReducePlan.DEPTH, shards.chunks());
      DeviceBuffer room = scratch(buffer.type(), chunksAtATime * group.size() * shards.chunk());
      plan = new AllReducePlan(group, device, buffer, shards, room);
      plans.put(buffer, plan);
    }
    return plan;
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
  static long chunk(long count, int element, int ranks, int chunkBytes) {
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
      Resources.closeAll(plans, transfers, reduceScatters, gathered);
      scratch.values().forEach(DeviceBuffer::close);
      scratch.clear();
      outgrown.forEach(DeviceBuffer::close);
      outgrown.clear();
    }
  }
}
