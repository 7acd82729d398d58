package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * A rendezvous of ranks on several nodes. The ranks of a node meet in shared memory. Once all have
 * arrived, the node's first rank, its leader, exchanges their calls with the other leaders ({@link
 * LeaderExchange}), and writes the calls of all ranks to memory that its node has mapped. So a call
 * costs ceil(log2 M) messages for each of M nodes, however many ranks they have. Only ranks that
 * wait make progress: a leader tests its messages, the others a counter.
 *
 * <p>The calls alternate between two slots. A rank writes its own entry for call k + 2 after the
 * leader has published call k + 1; so the leader has sent the entries of call k, and all ranks of
 * the node have arrived at call k + 1, and so have read those of call k. The leader writes the
 * entries of other nodes for call k + 2 after all ranks of its node have arrived at that call. The
 * same holds for the small contributions that travel with the calls.
 *
 * <p>A leader that waits for another one does not know which rank that one waits for. So ranks that
 * have waited for long tell each other who has arrived ({@link ArrivalNotices}). Then exactly the
 * missing ranks are those that are neither gathered nor heard of.
 */
public final class NodesRendezvous implements Rendezvous {
  /** The number of slots between which the calls alternate. */
  public static final int SLOTS = GatheredCalls.SLOTS;

  /** Polls before the first look at the clock: most waits are shorter. */
  private static final int POLLS = 64;

  /** Less than the time after which a waiting rank looks whether any rank has died. */
  private static final long TELL_NANOS = Duration.ofMillis(50).toNanos();

  private static final long LOOK_NANOS = Duration.ofMillis(2).toNanos();

  /** A small contribution that travels with a rank's call. */
  public interface Contribution {
    /** Its size; at most {@link #contributionBytes}. */
    int bytes();

    /** Writes it to this rank's {@link #contribution} of a slot. */
    void write(int slot);
  }

  private final GroupTransport group;
  private final NodeLayout layout;
  private final SharedMemoryRendezvous node;
  private final NodeMemory memory;
  private final GatheredCalls calls;
  private final NodeParts parts; // null if no sums travel with the calls
  private final SumTree tree; // null unless this rank is a leader and sums may travel
  private final LeaderExchange exchange; // null unless this rank is a leader
  private final ArrivalNotices notices;
  private final IntPredicate near = this::isNear;
  private final IntPredicate comeNear = this::hasComeNear;
  private final int leader; // of this node
  private final int nodeSize;
  private final Message[] arrivals;
  private final Message[] completions;
  private Contribution next; // for the next call, or null
  private LeaderSums nextSums; // for the next call, or null
  private long current;
  private int come; // ranks of this node that the leader knows to have arrived
  private int polls; // in the current call
  private long since; // the first look at the clock
  private long looked;

  /**
   * @param memory {@link #bytes} for each rank of this node, numbered by {@linkplain
   *     NodeLayout#localRank local ranks}
   * @param notices of the group; closed by their owner
   * @param sums whether sums may travel with the calls; the same on all ranks
   */
  public NodesRendezvous(
      GroupTransport group,
      NodeLayout layout,
      NodeMemory memory,
      ArrivalNotices notices,
      boolean sums) {
    this(group, layout, memory, notices, GatheredCalls.payloadBytes(group.size()), sums);
  }

  private NodesRendezvous(
      GroupTransport group,
      NodeLayout layout,
      NodeMemory memory,
      ArrivalNotices notices,
      int payload,
      boolean sums) {
    this.group = group;
    this.layout = layout;
    this.memory = memory;
    this.notices = notices;
    nodeSize = layout.ranksOf(layout.node()).size();
    leader = layout.ranksOf(layout.node()).get(0);
    node = new SharedMemoryRendezvous(memory, layout.localRank(), nodeSize);
    int tableBytes = GatheredCalls.bytes(group.size(), payload);
    ByteBuffer table = memory.of(0).slice(SharedMemoryRendezvous.BYTES, tableBytes);
    calls = new GatheredCalls(table.order(ByteOrder.nativeOrder()), group.size(), payload);
    int partsAt = SharedMemoryRendezvous.BYTES + tableBytes;
    parts =
        sums
            ? new NodeParts(memory.of(0).slice(partsAt, NodeParts.bytes(nodeSize)), nodeSize)
            : null;
    boolean leads = group.rank() == leader;
    tree = sums && leads ? new SumTree(layout.nodes(), layout.node()) : null;
    exchange = leads ? new LeaderExchange(group, layout, calls, tree) : null;
    arrivals = new Message[group.size()];
    completions = new Message[group.size()];
    for (int peer = 0; peer < arrivals.length; peer++) {
      arrivals[peer] = isNear(peer) ? new NearArrival(peer) : new FarArrival(peer);
      completions[peer] = new Completion(peer);
    }
  }

  /**
   * A rendezvous in which each rank is its own leader, so it needs no shared memory.
   *
   * @param notices of the group; closed by their owner
   * @param carries whether small contributions may travel with the calls; the same on all ranks
   */
  public static NodesRendezvous ofLeaders(
      GroupTransport group, ArrivalNotices notices, boolean carries) {
    int payload = carries ? GatheredCalls.payloadBytes(group.size()) : 0;
    int bytes = SharedMemoryRendezvous.BYTES + GatheredCalls.bytes(group.size(), payload);
    return new NodesRendezvous(
        group,
        NodeLayout.ofSingles(group.ranks()),
        NodeMemory.ofOne(bytes),
        notices,
        payload,
        false);
  }

  /**
   * The size of a rank's part of its node's memory.
   *
   * @param localRank the rank's number on its node
   * @param nodeSize the number of ranks of its node
   * @param ranks the number of ranks of the group
   * @param sums whether sums may travel with the calls
   */
  public static int bytes(int localRank, int nodeSize, int ranks, boolean sums) {
    int payload = GatheredCalls.payloadBytes(ranks);
    return SharedMemoryRendezvous.BYTES
        + (localRank == 0 ? GatheredCalls.bytes(ranks, payload) : 0)
        + (localRank == 0 && sums ? NodeParts.bytes(nodeSize) : 0);
  }

  private boolean isNear(int peer) {
    return layout.nodeOf(peer) == layout.node();
  }

  /** The rendezvous of this node's ranks, by their local ranks. */
  public SharedMemoryRendezvous node() {
    return node;
  }

  /** The memory of this node's ranks, by their local ranks. */
  public NodeMemory memory() {
    return memory;
  }

  /** The maximum size of a {@link Contribution}; the same on all ranks. */
  public int contributionBytes() {
    return calls.payloadBytes();
  }

  /** Sets what travels with this rank's next call; null for nothing. */
  public void carry(Contribution contribution) {
    next = contribution;
  }

  /** Whether sums may travel with the calls; the same on all ranks. */
  public boolean canSum() {
    return parts != null;
  }

  /** The sums of this rank, or null if it is no leader or no sums travel. */
  public SumTree sumTree() {
    return tree;
  }

  /** This rank's number on its node. */
  public int localRank() {
    return layout.localRank();
  }

  /** The number of ranks of this node, whose parts are numbered by their local ranks. */
  public int nodeSize() {
    return nodeSize;
  }

  /** Sets the sums that travel with the next call. */
  public void carry(LeaderSums sums) {
    nextSums = sums;
  }

  /** The memory for what a rank of this node adds to a sum. */
  public ByteBuffer part(int local, int slot) {
    return parts.part(local, slot);
  }

  /** The memory for the result of a sum. */
  public ByteBuffer result(int slot) {
    return parts.result(slot);
  }

  /** The slot of the current call. */
  public int slot() {
    return GatheredCalls.slot(current);
  }

  /** The memory for what travels with a rank's call, valid as {@link #call}. */
  public ByteBuffer contribution(int peer, int slot) {
    return calls
        .entry(peer, slot)
        .slice(CallRecord.BYTES, contributionBytes())
        .order(ByteOrder.nativeOrder());
  }

  /** Whether contributions of this size have travelled with the current calls of all ranks. */
  public boolean haveAllCarried(int bytes) {
    if (areAllSame()) {
      return CallRecord.inlineBytes(call(group.rank())) == bytes;
    }
    for (int peer = 0; peer < arrivals.length; peer++) {
      if (CallRecord.inlineBytes(call(peer)) != bytes) {
        return false;
      }
    }
    return true;
  }

  @Override
  public ByteBuffer own(long sequence) {
    return node.own(sequence);
  }

  @Override
  public void arrive(long sequence) {
    current = sequence;
    come = 0;
    polls = 0;
    ByteBuffer own = node.own(sequence);
    LeaderSums sums = nextSums;
    nextSums = null;
    if (next != null) {
      CallRecord.writeInline(own, next.bytes());
      next.write(slot());
      next = null;
    } else if (sums != null) {
      CallRecord.writeSummed(own, sums.bytes());
      sums.write(slot());
    }
    ByteBuffer entry = calls.entry(group.rank(), slot());
    entry.put(0, own, 0, CallRecord.BYTES);
    if (CallRecord.memoryId(own) >= 0) {
      CallRecord.writePlace(entry, 0, 0); // its node finds the place in its own record
    }
    if (exchange != null) {
      exchange.begin(slot(), sums);
    }
    node.arrive(sequence);
  }

  /** Whether the calls of all ranks are there. A leader makes progress here. */
  private boolean isGathered() {
    if (exchange != null && !calls.isGathered(current)) {
      while (come < nodeSize && node.arrival(come).test()) {
        come++;
      }
      if (come == nodeSize && exchange.advance()) {
        calls.publish(current, exchange.areSame());
      }
    }
    return calls.isGathered(current);
  }

  private boolean hasComeNear(int peer) {
    return isNear(peer) && node.arrival(layout.localRank(peer)).test();
  }

  /** Exchanges notices if the current call is late. */
  private void look() {
    if (polls < POLLS) {
      polls++;
      return;
    }
    long now = System.nanoTime(); // each time, because a poll on a crowded node can take long
    if (polls == POLLS) {
      polls++;
      since = now;
      looked = now;
    }
    if (now - looked < LOOK_NANOS) {
      return;
    }
    looked = now;
    exchangeNotices(now - since > TELL_NANOS);
  }

  private void exchangeNotices(boolean tells) {
    if (tells || notices.isOpen()) {
      notices.exchange(current, near, comeNear, tells);
    }
  }

  @Override
  public Message arrival(int peer) {
    return arrivals[peer];
  }

  /**
   * Finishes when this rank needs nothing more from another one. After all have finished, the calls
   * of all ranks are there.
   */
  @Override
  public Message sent(int peer) {
    return completions[peer];
  }

  @Override
  public boolean isComplete() {
    return isGathered() && (exchange == null || exchange.isDone());
  }

  @Override
  public boolean areAllSame() {
    return calls.areSame(slot());
  }

  @Override
  public ByteBuffer call(int peer) {
    return calls.entry(areAllSame() ? group.rank() : peer, slot());
  }

  /** Whether other ranks of its node can map the buffer of each rank. */
  public boolean canAllBeMapped() {
    boolean can = CallRecord.memoryId(call(group.rank())) >= 0;
    for (int peer = 0; peer < arrivals.length && can && !areAllSame(); peer++) {
      can = CallRecord.memoryId(call(peer)) >= 0;
    }
    return can;
  }

  @Override
  public void abandon() {
    node.abandon();
    try {
      if (current > 0 && !calls.isGathered(current)) {
        exchangeNotices(true); // so that the others name the ranks that this one has missed
      }
    } catch (GradientSyncException | OutOfMemoryError e) {
      // they name this rank, which has given up
    }
  }

  @Override
  public boolean abandoned(int peer) {
    return isNear(peer) && node.abandoned(layout.localRank(peer));
  }

  @Override
  public void close() {
    Resources.closeAll(exchange);
  }

  /** What a rank waits for. Other ranks start it. */
  private abstract static class Condition implements Message {
    @Override
    public void start() {
      // nothing to start
    }

    @Override
    public void close() {
      // nothing to close
    }
  }

  private final class NearArrival extends Condition {
    private final int local;

    NearArrival(int peer) {
      local = layout.localRank(peer);
    }

    @Override
    public boolean test() {
      if (node.arrival(local).test()) {
        return true;
      }
      look();
      return false;
    }
  }

  private final class FarArrival extends Condition {
    private final int peer;

    FarArrival(int peer) {
      this.peer = peer;
    }

    @Override
    public boolean test() {
      if (isGathered()) {
        return true;
      }
      look();
      return notices.hasArrived(peer, current);
    }
  }

  private final class Completion extends Condition {
    private final int peer;

    Completion(int peer) {
      this.peer = peer;
    }

    @Override
    public boolean test() {
      boolean gathered = isGathered();
      if (exchange != null ? exchange.isDoneWith(peer) : gathered || peer != leader) {
        return true;
      }
      look();
      return false;
    }
  }
}
