package org.gradientsync.test.example;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.MessageReducerProvider;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.SyncContext;
import org.gradientsync.spi.Unclosed;

/**
 * A reducer for threads: each rank puts a copy of its input on a board, and computes its own output
 * from the inputs of all, in rank order. Messages between two ranks go by the transport.
 */
final class QueueReducer extends ForwardingReducer<Reducer> {
  /** Provides {@code queues}, for host memory and ranks of a {@link QueueJob}. */
  public static final class Provider extends MessageReducerProvider {
    private static final AtomicLong BOARDS = new AtomicLong();

    /** For the service loader. */
    public Provider() {
      super(QueueLauncher.NAME, 250, "the ranks are not joined by queues"); // before shared
    }

    @Override
    public Reducer create(SyncContext context) {
      long[] id = {BOARDS.incrementAndGet()};
      context.communicator().broadcast(LongBuffer.wrap(id), 0); // rank 0's, in this process
      int size = context.group().size();
      QueueJob job = ((QueueTransport) context.group().transport()).job();
      Board board =
          job.boards.computeIfAbsent(
              id[0], key -> new Board(new DeviceBuffer[size][], new AtomicIntegerArray(size)));
      return new QueueReducer(super.create(context), context, board);
    }
  }

  /** By rank, what it has for each rank in this call, and how many steps it has done. */
  record Board(DeviceBuffer[][] parts, AtomicIntegerArray steps) {}

  /** A copy of a call's input or null, its parts for each rank, and where theirs go. */
  private record Plan(DeviceBuffer input, DeviceBuffer[] parts, DeviceBuffer[] targets) {}

  private final RankGroup group;
  private final BackendDevice device;
  private final Board board;
  private final Message[] arrivals; // of each rank where this one is
  private final DeviceBuffer[] sources;
  private final Map<CollectiveCall, Plan> plans = new HashMap<>();
  private final Consumer<CollectiveCall> move = this::move;

  private QueueReducer(Reducer messages, SyncContext context, Board board) {
    super(messages);
    group = context.group();
    device = context.device();
    this.board = board;
    arrivals = new Message[group.size()];
    Arrays.setAll(
        arrivals, peer -> () -> board.steps.get(peer) - board.steps.get(group.rank()) >= 0);
    sources = new DeviceBuffer[group.size()];
  }

  @Override
  public void run(CollectiveCall call) {
    if (call.kind().isMessage()) {
      other.run(call);
    } else {
      group.run(call, move);
    }
  }

  private void move(CollectiveCall call) {
    Plan plan = plan(call);
    if (plan.input != null) {
      device.copy(call.in(), plan.input);
    }
    board.parts[group.rank()] = plan.parts;
    step();
    for (int peer = 0; call.out() != null && peer < group.size(); peer++) {
      sources[peer] = board.parts[peer][group.rank()];
      if (sources[peer] != null && !call.kind().reduces()) {
        device.copy(sources[peer], plan.targets[peer]);
      }
    }
    if (call.out() != null && call.kind().reduces()) {
      device.reduce(sources, call.out(), call.op());
    }
    step(); // now all have read the copies, which the next call or close may change
  }

  /** Waits until all have done as many steps. */
  private void step() {
    board.steps.incrementAndGet(group.rank());
    for (int peer = 0; peer < group.size(); peer++) {
      group.await(arrivals[peer], peer);
    }
  }

  private Plan plan(CollectiveCall call) {
    Plan known = plans.get(call);
    if (known != null) {
      return known;
    }
    DeviceBuffer input = null;
    if (call.in() != null && (call.kind() != Kind.BROADCAST || call.root() == group.rank())) {
      input = Unclosed.exempt(device.allocate(call.in().type(), call.in().count()));
    }
    DeviceBuffer[] parts = parts(input, call.kind().inputBlocks(group.size()));
    DeviceBuffer[] targets = parts(call.out(), call.kind().outputBlocks(group.size()));
    Plan plan = new Plan(input, parts, targets);
    plans.put(call.copy(), plan);
    return plan;
  }

  /** The block of each rank, or the only one for all. */
  private DeviceBuffer[] parts(DeviceBuffer whole, int blocks) {
    DeviceBuffer[] parts = new DeviceBuffer[group.size()];
    for (int rank = 0; whole != null && rank < parts.length; rank++) {
      long count = whole.count() / blocks;
      parts[rank] = whole.slice(blocks == 1 ? 0 : rank * count, count);
    }
    return parts;
  }

  @Override
  public void close() {
    Resources.closeAll(plans.values().stream().map(Plan::input).toArray(AutoCloseable[]::new));
    super.close();
  }
}
