package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The reducer for device memory on several nodes, made of two others: the reducer of a node's
 * ranks, and one that carries messages between the ranks with the same local rank on all nodes.
 * {@link TwoLevelGpuPlan} has the algorithm. It adds in rank order, so the bits are those of all
 * other reducers. Each rank sends and receives its shard twice at most.
 *
 * <p>Small buffers, the last elements of those that cannot be divided among a node's ranks, and all
 * other calls take a third reducer, of all ranks.
 */
public final class TwoLevelGpuReducer extends ForwardingReducer<Reducer> {
  /**
   * With smaller buffers, many steps take longer than one that moves more: measured with two nodes
   * of two GPUs. Pieces of larger ones are reduced one after the other, so that little scratch
   * memory is enough.
   */
  public static final Sizes SIZES = new Sizes(32 << 10, 64 << 20, 2 << 20);

  private static final String FAILED = "the call failed on ";
  private static final int MIN_CHUNK_BYTES = 128 << 10;
  private static final int CHUNKS = 16; // enough to keep all nodes busy at the same time

  private final String name;
  private final ProcessGroup group;
  private final ProcessGroup nodeRanks;
  private final ProcessGroup crossNodeRanks;
  private final BackendDevice device;
  private final NodeLayout layout;
  private final int localSize; // the ranks of each node
  private final Reducer node;
  private final Reducer crossNode;
  private final Sizes sizes;
  private final Resources resources;
  private final PlanCache<Pieces> plans;
  private final Map<DataType, DeviceBuffer> gathered = new EnumMap<>(DataType.class);
  private final Map<DataType, DeviceBuffer> sums = new EnumMap<>(DataType.class);
  private final Consumer<CollectiveCall> reduce = this::reduce;
  private final CollectiveCall last = new CollectiveCall(); // for the last elements
  private final Event finished;
  private Stream lastStream; // or null; it may still use the scratch memory

  /**
   * @param pieces what is reduced together with the ranks of the node and of other nodes
   * @param rest the last elements, or null
   */
  private record Pieces(List<TwoLevelGpuPlan> pieces, DeviceBuffer rest) implements AutoCloseable {
    @Override
    public void close() {
      Resources.closeAll(pieces);
      Resources.closeAll(rest);
    }
  }

  /**
   * Sizes in bytes, the same on all ranks.
   *
   * @param smallest the smallest buffer that is not left to the third reducer
   * @param piece the maximum size of a piece
   * @param chunk the maximum size of a chunk's sum
   */
  public record Sizes(int smallest, int piece, int chunk) {}

  /**
   * @param nodeRanks the ranks of this node
   * @param node their reducer
   * @param crossNodeRanks the ranks with this local rank, node by node
   * @param crossNode their reducer
   * @param flat a reducer of all ranks
   * @param resources what to close after the last call, which includes the reducers
   */
  public TwoLevelGpuReducer(
      String name,
      ProcessGroup group,
      ProcessGroup nodeRanks,
      Reducer node,
      ProcessGroup crossNodeRanks,
      Reducer crossNode,
      Reducer flat,
      BackendDevice device,
      Sizes sizes,
      Resources resources) {
    super(flat);
    this.name = name;
    this.group = group;
    this.nodeRanks = nodeRanks;
    this.crossNodeRanks = crossNodeRanks;
    this.device = device;
    this.node = node;
    this.crossNode = crossNode;
    this.sizes = sizes;
    this.resources = resources;
    layout = new NodeLayout(group.ranks());
    localSize = layout.most();
    plans = new PlanCache<>(group);
    finished = device.createEvent(false);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void run(CollectiveCall call) {
    if (call.kind() != Kind.ALL_REDUCE
        || whole(call.in()) == 0
        || call.in().sizeInBytes() < sizes.smallest()) {
      other.run(call);
      return;
    }
    synchronized (group) {
      requireNoCapture(call.in());
      group.run(call, reduce);
      DeviceBuffer rest = plans.get(call).rest();
      if (rest != null) {
        other.run(last.set(Kind.ALL_REDUCE, rest, rest, call.op(), RankGroup.NO_RANK));
      }
    }
  }

  /** The number of elements that can be divided among a node's ranks. */
  private long whole(DeviceBuffer buffer) {
    return buffer.count() / localSize * localSize;
  }

  private void reduce(CollectiveCall call) {
    try {
      run(call.in(), plan(call).pieces(), call.op());
    } catch (RuntimeException | Error e) {
      throw broken(e);
    }
  }

  /** Throws before the ranks meet: hosts do not meet when a graph is replayed. */
  private void requireNoCapture(DeviceBuffer buffer) {
    if (device.streamOf(buffer).isCapturing()) {
      throw new IllegalStateException(
          ("the stream is being captured: buffer=%s, rank=%s;"
                  + " with the reducer %s, call outside of graphs")
              .formatted(buffer, group.rank(), name));
    }
  }

  private void run(DeviceBuffer buffer, List<TwoLevelGpuPlan> pieces, ReduceOp op) {
    Stream stream = device.streamOf(buffer);
    if (lastStream != null && lastStream != stream) {
      stream.waitFor(finished);
    }
    for (int i = 0; i < pieces.size(); i++) {
      pieces.get(i).run(op, group.size());
    }
    finished.record(stream);
    lastStream = stream;
  }

  private Pieces plan(CollectiveCall call) {
    Pieces plan = plans.get(call);
    if (plan == null) {
      DeviceBuffer buffer = call.in();
      long whole = whole(buffer);
      long most = pieceCount(buffer.type());
      List<TwoLevelGpuPlan> pieces = new ArrayList<>();
      for (long first = 0; first < whole; first += most) {
        pieces.add(piece(buffer.slice(first, Math.min(most, whole - first))));
      }
      long rest = buffer.count() - whole;
      plan = new Pieces(pieces, rest == 0 ? null : buffer.slice(whole, rest));
      plans.put(call, plan);
    }
    return plan;
  }

  private TwoLevelGpuPlan piece(DeviceBuffer piece) {
    DataType type = piece.type();
    DataType accumulator = type.accumulator();
    Stream stream = device.streamOf(piece);
    long room = pieceCount(type);
    long shard = piece.count() / localSize;
    return new TwoLevelGpuPlan(
        device,
        node,
        crossNode,
        layout.nodes(),
        layout.node(),
        localSize,
        layout.localRank(),
        piece,
        device.on(stream, scratch(gathered, type, room)),
        device.on(stream, scratch(sums, accumulator, 2 * maxChunk(accumulator))),
        chunk(shard, accumulator));
  }

  private DeviceBuffer scratch(Map<DataType, DeviceBuffer> of, DataType type, long count) {
    DeviceBuffer memory = of.get(type);
    if (memory == null) {
      memory = resources.add(Unclosed.exempt(device.allocate(type, count)));
      device.await(memory); // it must be zeroed before another stream writes to it
      of.put(type, memory);
    }
    return memory;
  }

  private long pieceCount(DataType type) {
    return Math.max(1, sizes.piece() / type.sizeInBytes() / localSize) * localSize;
  }

  private long maxChunk(DataType accumulator) {
    return sizes.chunk() / accumulator.sizeInBytes();
  }

  private long chunk(long shard, DataType accumulator) {
    long bytes = Long.highestOneBit(Math.max(1, shard * accumulator.sizeInBytes() / CHUNKS));
    return Math.min(
        maxChunk(accumulator), Math.max(MIN_CHUNK_BYTES, bytes) / accumulator.sizeInBytes());
  }

  /**
   * Breaks all three groups, because a failure after the rendezvous leaves the other ranks waiting,
   * each in the group of the step that it has come to.
   */
  private RankLostException broken(Throwable e) {
    String reason = reason(e);
    for (ProcessGroup part : new ProcessGroup[] {nodeRanks, crossNodeRanks}) {
      synchronized (part) {
        if (!part.isBroken()) {
          part.broken(reason, e);
        }
      }
    }
    return group.broken(reason, e);
  }

  /** The first failure, which the other ranks pass on as it is. */
  private String reason(Throwable e) {
    boolean lost = e instanceof RankLostException;
    String message = lost ? e.getMessage() : e.toString();
    int first = lost ? message.lastIndexOf(FAILED) : -1;
    if (first < 0) {
      return FAILED + group.name(group.rank()) + ": " + message;
    }
    int end = message.indexOf(", rank=", first); // what each group adds to the failure
    return message.substring(first, end < 0 ? message.length() : end);
  }

  @Override
  public void check(boolean together) {
    try {
      node.check(together);
      crossNode.check(together);
    } catch (RuntimeException | Error e) {
      synchronized (group) {
        throw broken(e);
      }
    }
    super.check(together);
  }

  @Override
  public List<String> state() {
    List<String> lines = new ArrayList<>();
    lines.add("");
    lines.add(name + ": node=" + node.name() + ", between nodes=" + crossNode.name());
    lines.addAll(node.state());
    lines.addAll(crossNode.state());
    return lines;
  }

  @Override
  public void close() {
    synchronized (group) {
      boolean waits = lastStream != null && !group.isBroken();
      Resources.closeAll(waits ? finished::await : null, plans, finished, resources);
    }
  }
}
