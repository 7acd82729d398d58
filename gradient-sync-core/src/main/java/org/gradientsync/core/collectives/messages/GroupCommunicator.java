package org.gradientsync.core.collectives.messages;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.group.Exchange;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.HostElement;
import org.gradientsync.spi.RankGroup;

/**
 * The communicator of every backend, over the backend's transport. It copies what it reduces to a
 * buffer in host memory, for a {@link MessageReducer}; {@link HostTransfers} move anything else.
 */
public final class GroupCommunicator implements Communicator {
  private static final HostCall BARRIER = new HostCall(Kind.BARRIER, null, null, RankGroup.NO_RANK);

  private final ProcessGroup group;
  private final Consumer<CollectiveCall> transfer;
  private final Consumer<List<CollectiveCall>> exchange;
  private final HostDevice host;
  private final MessageReducer reducer;
  private final int localRank;
  private final int localSize;
  private final int nodeCount;
  private final ThreadLocal<Origin> composed;
  private final CallInterceptor interceptor; // or null
  private volatile Runnable beforeCall = () -> {};

  /**
   * @param ranks the group; this communicator closes it
   */
  public GroupCommunicator(RankGroup ranks) {
    group = ProcessGroup.of(ranks);
    Exchange messages = group.exchange();
    transfer = new HostTransfers(group, messages)::move;
    exchange = messages::move;
    host = new HostDevice();
    reducer = new MessageReducer("communicator", group, host);
    int[] nodes = new int[group.size()];
    for (int peer = 0; peer < nodes.length; peer++) {
      nodes[peer] = group.ranks().nodeOf(peer);
    }
    int own = nodes[group.rank()];
    localRank = (int) Arrays.stream(nodes, 0, group.rank()).filter(n -> n == own).count();
    localSize = (int) Arrays.stream(nodes).filter(n -> n == own).count();
    nodeCount = (int) Arrays.stream(nodes).distinct().count();
    composed = new ThreadLocal<>();
    interceptor = null;
  }

  private GroupCommunicator(GroupCommunicator own, CallInterceptor interceptor) {
    group = own.group;
    transfer = own.transfer;
    exchange = own.exchange;
    host = own.host;
    reducer = own.reducer;
    localRank = own.localRank;
    localSize = own.localSize;
    nodeCount = own.nodeCount;
    composed = own.composed;
    beforeCall = own.beforeCall;
    this.interceptor = interceptor;
  }

  /**
   * {@return a view of this communicator for a program, whose collectives an interceptor sees, also
   * those of what is split from it}
   */
  public GroupCommunicator intercepted(CallInterceptor newInterceptor) {
    return new GroupCommunicator(this, newInterceptor);
  }

  /**
   * Sets an action that runs before each call that needs other ranks. It orders this communicator's
   * calls among other calls of the same ranks.
   *
   * @param newBeforeCall called with no lock held; may wait and throw
   */
  public void beforeEachCall(Runnable newBeforeCall) {
    beforeCall = Objects.requireNonNull(newBeforeCall, "beforeCall");
  }

  /**
   * Makes calls of which one call of the program consists: errors and reports show that one.
   *
   * @param parts make calls of this communicator, on this thread
   */
  public void compose(Origin call, Runnable parts) {
    composed.set(call);
    try {
      parts.run();
    } finally {
      composed.remove();
    }
  }

  /** The origin to show for a call of this communicator. */
  private Origin shown() {
    Origin program = composed.get();
    return program == null ? Origin.COMMUNICATOR : program;
  }

  @Override
  public int rank() {
    return group.rank();
  }

  @Override
  public int size() {
    return group.size();
  }

  @Override
  public int localRank() {
    return localRank;
  }

  @Override
  public int localSize() {
    return localSize;
  }

  @Override
  public int nodeCount() {
    return nodeCount;
  }

  @Override
  public Duration timeout() {
    return group.timeouts().timeout();
  }

  @Override
  public void barrier() {
    barrier(Origin.SYNC);
  }

  /** A barrier of another name. */
  public void barrier(Origin origin) {
    beforeCall.run();
    make(origin, BARRIER);
  }

  /** The time-out of a call in nanoseconds, ten years at most. */
  public long timeoutNanos() {
    return group.timeouts().timeoutNanos();
  }

  /** Notes that all ranks throw this in the same call. */
  public void thrownByAll(RuntimeException e) {
    group.thrownByAll(e);
  }

  /** Whether all ranks have thrown this in the same call. */
  public boolean haveAllThrown(Throwable e) {
    return group.haveAllThrown(e);
  }

  /** Changes when this rank begins a call in any group of the job. */
  public long callsOfJob() {
    return group.job().calls();
  }

  /** Breaks the group, if it is not broken yet: calls of the other ranks throw and say why. */
  public void giveUp(String why, Throwable cause) {
    synchronized (group) {
      if (!group.isBroken()) {
        group.broken(why, cause);
      }
    }
  }

  @Override
  public void allReduce(Buffer data, DataType type, ReduceOp op) {
    requireWritable(data, "data");
    requireReducible(type, op);
    beforeCall.run();
    group.requireUsable();
    try (DeviceBuffer copy = host.allocate(type, elements(data, type))) {
      copy.copyFrom(data);
      make(shown(), CollectiveCall.allReduce(copy, op));
      copy.copyTo(data);
    }
  }

  /**
   * The number of elements of a type in a Java buffer.
   *
   * @throws IllegalArgumentException if it has bytes, and these are not such elements
   */
  private long elements(Buffer data, DataType type) {
    long bytes = (long) data.remaining() * HostElement.of(data).size();
    if (data instanceof ByteBuffer buffer && buffer.order() != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          ("the buffer must be in native byte order: order=%s, rank=%s;"
                  + " call order(ByteOrder.nativeOrder()) before filling it")
              .formatted(buffer.order(), rank()));
    }
    if (bytes % type.sizeInBytes() != 0) {
      throw new IllegalArgumentException(
          "not a whole number of elements: bytes=" + bytes + ", type=" + type + ", rank=" + rank());
    }
    return bytes / type.sizeInBytes();
  }

  @Override
  public void reduceScatter(Buffer send, Buffer receive, DataType type, ReduceOp op) {
    requireData(send, "send");
    requireWritable(receive, "receive");
    requireReducible(type, op);
    requireTimesSize(send, "send", receive, "receive");
    beforeCall.run();
    group.requireUsable();
    try (DeviceBuffer in = host.allocate(type, elements(send, type));
        DeviceBuffer out = host.allocate(type, elements(receive, type))) {
      in.copyFrom(send);
      make(shown(), new CollectiveCall(Kind.REDUCE_SCATTER, in, out, op, RankGroup.NO_RANK));
      out.copyTo(receive);
    }
  }

  @Override
  public void broadcast(Buffer data, int root) {
    requireWritable(data, "data");
    group.ranks().require(root, "root");
    beforeCall.run();
    make(shown(), new HostCall(Kind.BROADCAST, data, data, root));
  }

  @Override
  public void allGather(Buffer send, Buffer receive) {
    requireData(send, "send");
    requireWritable(receive, "receive");
    requireTimesSize(receive, "receive", send, "send");
    beforeCall.run();
    make(shown(), new HostCall(Kind.ALL_GATHER, send, receive, RankGroup.NO_RANK));
  }

  @Override
  public void gather(Buffer send, Buffer receive, int root) {
    requireData(send, "send");
    group.ranks().require(root, "root");
    if (rank() == root) {
      requireWritable(receive, "receive");
      requireTimesSize(receive, "receive", send, "send");
    }
    beforeCall.run();
    make(shown(), new HostCall(Kind.GATHER, send, rank() == root ? receive : null, root));
  }

  @Override
  public void scatter(Buffer send, Buffer receive, int root) {
    requireWritable(receive, "receive");
    group.ranks().require(root, "root");
    if (rank() == root) {
      requireData(send, "send");
      requireTimesSize(send, "send", receive, "receive");
    }
    beforeCall.run();
    make(shown(), new HostCall(Kind.SCATTER, rank() == root ? send : null, receive, root));
  }

  @Override
  public void send(Buffer data, int destination, int tag) {
    requireData(data, "data");
    group.ranks().requireOther(destination, "destination");
    requireTag(tag);
    beforeCall.run();
    exchange(List.of(new HostCall(Kind.SEND, data, null, destination, tag)));
  }

  @Override
  public void receive(Buffer data, int source, int tag) {
    requireWritable(data, "data");
    group.ranks().requireOther(source, "source");
    requireTag(tag);
    beforeCall.run();
    exchange(List.of(new HostCall(Kind.RECEIVE, null, data, source, tag)));
  }

  @Override
  public void sendReceive(Buffer send, int destination, Buffer receive, int source, int tag) {
    requireData(send, "send");
    requireWritable(receive, "receive");
    group.ranks().require(destination, "destination");
    group.ranks().require(source, "source");
    requireTag(tag);
    if (destination == rank() && source == rank()) {
      requireSame(send, receive);
      group.requireUsable();
      HostBuffers.copy(send, send.position(), receive, receive.position(), send.remaining());
      return;
    }
    group.ranks().requireOther(destination, "destination");
    group.ranks().requireOther(source, "source");
    beforeCall.run();
    exchange(
        List.of(
            new HostCall(Kind.SEND, send, null, destination, tag),
            new HostCall(Kind.RECEIVE, null, receive, source, tag)));
  }

  @Override
  public Communicator split(int color, int key) {
    beforeCall.run();
    ProcessGroup part = group.split(color, key, group.timeouts());
    return part == null ? null : new GroupCommunicator(part).intercepted(interceptor);
  }

  @Override
  public void close() {
    group.close();
    reducer.close();
    host.close();
  }

  /** Makes a collective, or what an interceptor gives instead. */
  private void make(Origin origin, CollectiveCall asked) {
    CollectiveCall call = interceptor == null ? asked : interceptor.beforeCall(asked, size());
    if (call instanceof HostCall) {
      group.run(origin, call, transfer);
    } else if (call != null) {
      reducer.run(origin, call, false);
    }
  }

  private void exchange(List<CollectiveCall> messages) {
    group.exchange(shown(), messages, exchange);
  }

  private static void requireTag(int tag) {
    if (tag < 0 || tag > MAX_TAG) {
      throw new IllegalArgumentException("no such tag: tag=" + tag + ", largest=" + MAX_TAG);
    }
  }

  private static void requireReducible(DataType type, ReduceOp op) {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(op, "op");
    op.requireDefinedFor(type);
  }

  private static void requireData(Buffer data, String role) {
    Objects.requireNonNull(data, role);
    HostElement.of(data); // throws for other types
  }

  private static void requireWritable(Buffer data, String role) {
    requireData(data, role);
    if (data.isReadOnly()) {
      throw new IllegalArgumentException(role + " is read-only");
    }
  }

  private static void requireSame(Buffer a, Buffer b) {
    if (HostElement.of(a) != HostElement.of(b) || a.remaining() != b.remaining()) {
      throw new IllegalArgumentException(
          "element type or length does not match: send=" + a + ", receive=" + b);
    }
  }

  private void requireTimesSize(Buffer whole, String wholeRole, Buffer part, String partRole) {
    if (HostElement.of(whole) != HostElement.of(part)
        || whole.remaining() != (long) part.remaining() * size()) {
      throw new IllegalArgumentException(
          ("length or element type does not match:"
                  + " %s=%s must have size=%s times the elements of %s=%s")
              .formatted(wholeRole, whole, size(), partRole, part));
    }
  }
}
