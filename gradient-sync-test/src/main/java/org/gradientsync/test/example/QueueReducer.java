package org.gradientsync.test.example;

import java.nio.LongBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.SyncContext;
import org.gradientsync.spi.Unclosed;

/**
 * A reducer for threads: each rank hands every other one the part of its input that concerns it,
 * and each computes its own output from the parts, in rank order. A call ends once all others have
 * read this rank's parts.
 */
final class QueueReducer implements Reducer {
  /** Provides {@code queues}, for host memory and ranks of a {@link QueueJob}. */
  public static final class Provider implements ReducerProvider {
    private static final AtomicLong BOARDS = new AtomicLong();

    /** For the service loader. */
    public Provider() {}

    @Override
    public String name() {
      return QueueLauncher.NAME;
    }

    @Override
    public int priority() {
      return 250; // before shared, which would do, too
    }

    @Override
    public Availability availability(SyncContext context) {
      return context.group().transport() instanceof QueueTransport
              && context.device().kind().equals("host")
          ? Availability.yes()
          : Availability.no("the ranks are not connected by queues, or not in host memory");
    }

    @Override
    public Reducer create(SyncContext context) {
      long[] id = {BOARDS.incrementAndGet()};
      context.communicator().broadcast(LongBuffer.wrap(id), 0); // rank 0's, in this process
      int size = context.group().size();
      QueueTransport transport = (QueueTransport) context.group().transport();
      Board board = transport.job.boards.computeIfAbsent(id[0], key -> new Board(size));
      return new QueueReducer(context.group(), context.device(), board);
    }
  }

  /** Queues of one element from each rank to each: of parts, and of those that have been read. */
  static final class Board {
    private final Slot[][] parts;
    private final Slot[][] read;

    Board(int size) {
      parts = new Slot[size][size];
      read = new Slot[size][size];
      for (int i = 0; i < size * size; i++) {
        parts[i / size][i % size] = new Slot();
        read[i / size][i % size] = new Slot();
      }
    }
  }

  /** A queue of one element; the receiver's wait for it. */
  private static final class Slot implements Message {
    private final AtomicReference<DeviceBuffer> element = new AtomicReference<>();
    private DeviceBuffer got; // the receiver's

    void put(DeviceBuffer newElement) {
      element.set(newElement);
    }

    @Override
    public void start() {
      got = null;
    }

    @Override
    public boolean test() {
      got = got == null ? element.getAndSet(null) : got;
      return got != null;
    }

    @Override
    public void close() {}
  }

  /** The parts of a call's input and output, one for each rank, and room for a sum. */
  private record Plan(
      DeviceBuffer[] in, DeviceBuffer[] out, DeviceBuffer[] got, DeviceBuffer sum) {}

  private static final int STEPS = 3; // of an exchange of messages

  private final RankGroup group;
  private final BackendDevice device;
  private final Board board;
  private final Map<CollectiveCall, Plan> plans = new HashMap<>();
  private final Consumer<CollectiveCall> move = this::move;
  private final Consumer<List<CollectiveCall>> exchange = this::exchangeRound;

  private QueueReducer(RankGroup group, BackendDevice device, Board board) {
    this.group = group;
    this.device = device;
    this.board = board;
  }

  @Override
  public String name() {
    return QueueLauncher.NAME;
  }

  @Override
  public void run(CollectiveCall call) {
    group.run(call, move);
  }

  @Override
  public void prepare(CollectiveCall call) {
    synchronized (group) {
      group.meetToPrepare(call);
      plan(call);
    }
  }

  @Override
  public void exchange(List<CollectiveCall> messages) {
    group.exchange(messages, exchange);
  }

  private void exchangeRound(List<CollectiveCall> round) {
    for (int step = 0; step < STEPS; step++) {
      for (int i = 0; i < round.size(); i++) {
        exchange(round.get(i), step);
      }
    }
  }

  /** Sends offer first, then receives copy, and then sends wait until they have been read. */
  private void exchange(CollectiveCall message, int step) {
    int peer = message.peer();
    if (message.sends() && step == 0) {
      offer(message.in(), peer);
    } else if (!message.sends() && step == 1) {
      device.copy(take(board.parts, peer), message.out());
      board.read[group.rank()][peer].put(message.out());
    } else if (message.sends() && step == 2) {
      take(board.read, peer);
    }
  }

  private void move(CollectiveCall call) {
    if (call.kind().isMessage()) {
      for (int step = 0; step < STEPS; step++) {
        exchange(call, step);
      }
      return;
    }
    Plan plan = plan(call);
    for (int peer = 0; peer < group.size(); peer++) {
      offer(plan.in[peer], peer);
    }
    boolean gets = call.out() != null;
    for (int peer = 0; peer < group.size(); peer++) {
      plan.got[peer] = gets && sends(call, peer) ? take(board.parts, peer) : null;
    }
    if (gets && call.kind().reduces()) {
      device.reduce(plan.got, plan.sum, call.op());
    } else if (gets) {
      for (int peer = 0; peer < group.size(); peer++) {
        if (plan.got[peer] != null && !overlap(plan.got[peer], plan.out[peer])) {
          device.copy(plan.got[peer], plan.out[peer]);
        }
      }
    }
    for (int peer = 0; peer < group.size(); peer++) {
      if (plan.got[peer] != null) {
        board.read[group.rank()][peer].put(plan.got[peer]);
      }
    }
    for (int peer = 0; peer < group.size(); peer++) {
      if (plan.in[peer] != null) {
        take(board.read, peer);
      }
    }
    if (gets && plan.sum != null && plan.sum != call.out()) {
      device.copy(plan.sum, call.out()); // nobody reads this rank's input any more
    }
  }

  private static boolean overlap(DeviceBuffer a, DeviceBuffer b) {
    return ((AbstractDeviceBuffer) a).overlaps((AbstractDeviceBuffer) b);
  }

  /** Whether a rank has a part for those that get an output. */
  private static boolean sends(CollectiveCall call, int rank) {
    boolean ofRoot = call.kind() == Kind.BROADCAST || call.kind() == Kind.SCATTER;
    return !ofRoot || rank == call.root();
  }

  private Plan plan(CollectiveCall call) {
    Plan known = plans.get(call);
    return known != null ? known : newPlan(call);
  }

  private Plan newPlan(CollectiveCall call) {
    int size = group.size();
    long count = call.blockCount(size);
    DeviceBuffer[] in = new DeviceBuffer[size];
    DeviceBuffer[] out = new DeviceBuffer[size];
    for (int peer = 0; peer < size; peer++) {
      boolean wanted = call.in() != null && sends(call, group.rank());
      wanted &= call.kind().hasOutput(peer, call.root());
      in[peer] = wanted ? part(call.in(), call.kind().inputBlocks(size), peer, count) : null;
      out[peer] =
          call.out() == null ? null : part(call.out(), call.kind().outputBlocks(size), peer, count);
    }
    DeviceBuffer sum = call.kind().reduces() ? call.out() : null;
    if (call.kind() == Kind.ALL_REDUCE) {
      sum = Unclosed.exempt(device.allocate(call.out().type(), count));
    }
    Plan plan = new Plan(in, out, new DeviceBuffer[size], sum);
    plans.put(call.copy(), plan);
    return plan;
  }

  private static DeviceBuffer part(DeviceBuffer whole, int blocks, int block, long count) {
    return blocks == 1 ? whole : whole.slice(block * count, count);
  }

  private void offer(DeviceBuffer part, int peer) {
    if (part != null) {
      board.parts[group.rank()][peer].put(part);
    }
  }

  private DeviceBuffer take(Slot[][] from, int peer) {
    Slot slot = from[peer][group.rank()];
    slot.start();
    if (peer == group.rank()) {
      slot.test(); // it is there
    } else {
      group.await(slot, peer);
    }
    return slot.got;
  }

  @Override
  public void close() {
    Resources.closeAll(plans.values().stream().map(Plan::sum).toArray(AutoCloseable[]::new));
  }
}
