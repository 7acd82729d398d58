package org.gradientsync.core.collectives.nodes;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;

/**
 * One piece of a buffer, prepared once and reduced many times. Each rank of a node carries a shard:
 *
 * <ol>
 *   <li>an all-to-all on the node brings each rank the node's contributions to its shard;
 *   <li>the shard's sum passes from node to node in rank order, and the result returns, in chunks
 *       ({@link TwoLevelGpuSteps});
 *   <li>an all-gather on the node brings each rank the other shards.
 * </ol>
 */
final class TwoLevelGpuPlan implements AutoCloseable {
  private final BackendDevice device;
  private final Reducer node;
  private final Reducer crossNode;
  private final TwoLevelGpuSteps steps;
  private final CollectiveCall scatter; // on the node: contributions to their carriers
  private final CollectiveCall gather; // on the node: results from their carriers
  private final DeviceBuffer gathered;
  private final DeviceBuffer shard;
  private final DeviceBuffer[] sums;
  private final DeviceBuffer[] results;
  private final DeviceBuffer[][] contributions; // by chunk, and by rank of the node
  private final List<List<CollectiveCall>> messages = new ArrayList<>(); // by step
  private final List<DeviceBuffer> views = new ArrayList<>();

  /**
   * @param node the reducer of the ranks of this node
   * @param crossNode carries messages between the ranks with this local rank, one for each node
   * @param localRank this rank's number on its node
   * @param piece a multiple of the node's ranks in elements
   * @param gathered room for as many elements, on the piece's stream
   * @param sums room for two chunks of sums, on the piece's stream
   * @param chunk the maximum number of elements in a chunk
   */
  TwoLevelGpuPlan(
      BackendDevice device,
      Reducer node,
      Reducer crossNode,
      int nodes,
      int ownNode,
      int localSize,
      int localRank,
      DeviceBuffer piece,
      DeviceBuffer gathered,
      DeviceBuffer sums,
      long chunk) {
    this.device = device;
    this.node = node;
    this.crossNode = crossNode;
    views.add(piece);
    long length = piece.count() / localSize;
    this.gathered = view(gathered, 0, piece.count());
    shard = view(piece, localRank * length, length);
    scatter = new CollectiveCall(Kind.ALL_TO_ALL, piece, this.gathered, null, RankGroup.NO_RANK);
    gather = new CollectiveCall(Kind.ALL_GATHER, shard, piece, null, RankGroup.NO_RANK);
    int chunks = Math.toIntExact((length - 1) / chunk + 1);
    steps = new TwoLevelGpuSteps(chunks, nodes, ownNode);
    this.sums = new DeviceBuffer[chunks];
    results = new DeviceBuffer[chunks];
    contributions = new DeviceBuffer[chunks][localSize];
    for (int i = 0; i < chunks; i++) {
      long first = i * chunk;
      long count = Math.min(chunk, length - first);
      results[i] = view(shard, first, count);
      this.sums[i] = view(sums, i % 2 * chunk, count);
      for (int local = 0; local < localSize; local++) {
        contributions[i][local] = view(this.gathered, local * length + first, count);
      }
    }
    for (int step = 0; step < steps.count(); step++) {
      messages.add(messages(step));
    }
  }

  private DeviceBuffer view(DeviceBuffer of, long first, long count) {
    DeviceBuffer view = of.slice(first, count);
    views.add(view);
    return view;
  }

  private List<CollectiveCall> messages(int step) {
    int before = steps.node() - 1;
    int after = steps.node() + 1;
    List<CollectiveCall> list = new ArrayList<>();
    add(list, sums, steps.sumReceived(step), before, false);
    add(list, results, steps.resultReceived(step), after, false);
    add(list, sums, steps.sumSent(step), after, true);
    add(list, results, steps.resultSent(step), before, true);
    return list;
  }

  private static void add(
      List<CollectiveCall> list, DeviceBuffer[] chunks, int chunk, int peer, boolean sends) {
    if (chunk != TwoLevelGpuSteps.NONE) {
      list.add(
          sends
              ? CollectiveCall.send(chunks[chunk], peer)
              : CollectiveCall.receive(chunks[chunk], peer));
    }
  }

  /**
   * Enqueues the reduction, or runs it.
   *
   * @param ranks the number of ranks on all nodes
   */
  void run(ReduceOp op, int ranks) {
    node.run(scatter);
    for (int step = 0; step < messages.size(); step++) {
      if (!messages.get(step).isEmpty()) {
        crossNode.exchange(messages.get(step));
      }
      int chunk = steps.added(step);
      if (chunk != TwoLevelGpuSteps.NONE) {
        add(chunk, op, ranks);
      }
    }
    node.run(gather);
  }

  private void add(int chunk, ReduceOp op, int ranks) {
    DeviceBuffer running = steps.isFirst() ? null : sums[chunk];
    if (steps.isLast()) {
      device.finish(running, contributions[chunk], results[chunk], op, ranks);
    } else {
      device.accumulate(running, contributions[chunk], sums[chunk], op);
    }
  }

  @Override
  public void close() {
    Resources.closeAll(views);
  }
}
