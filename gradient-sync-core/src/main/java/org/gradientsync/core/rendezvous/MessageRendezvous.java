package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * A rendezvous of ranks on several nodes; a rank that shares no memory counts as a node of its own,
 * as all do when a group begins. The ranks of a node meet in shared memory. Once all have arrived,
 * the node's first rank, its leader, exchanges their calls with the other leaders ({@link
 * LeaderExchange}), and writes the calls of all ranks to memory that its node has mapped. So a call
 * takes floor(log2 M) rounds of messages between M nodes, however many ranks they have. Only ranks
 * that wait make progress: a leader tests its messages, the others a counter.
 *
 * <p>The calls alternate between two slots. A rank writes its own entry for call k + 2 after the
 * leader has published call k + 1; so the leader has sent the entries of call k, and all ranks of
 * the node have arrived at call k + 1, and so have read those of call k. The leader writes the
 * entries of other nodes for call k + 2 after all ranks of its node have arrived at that call. The
 * same holds for the small contributions that travel with the calls.
 *
 * <p>A leader that waits for another one does not know which rank that one waits for. So ranks that
 * have waited for long tell each other who has arrived ({@link ArrivalNotices}).
 */
public final class MessageRendezvous implements Rendezvous {
  // Less than the time after which a waiting rank looks whether any rank has died.
  private static final long TELL_NANOS = Duration.ofMillis(50).toNanos();
  private static final long LOOK_NANOS = Duration.ofMillis(2).toNanos();

  private final int rank;
  private final NodeLayout layout;
  private final SharedMemoryRendezvous node; // by local ranks, as its memory
  private final NodeMemory memory;
  private final GatheredCalls calls;
  private final SumRounds sumRounds; // null unless this rank is a leader and sums may travel
  private final LeaderExchange exchange; // null unless this rank is a leader
  private final ArrivalNotices notices;
  private final IntPredicate near = this::isNear;
  private final IntPredicate comeNear = this::hasComeNear;
  private final int leader; // of this node
  private final int nodeSize;
  private final Message[] arrivals;
  private final Message[] completions; // this rank needs nothing more from another one
  private final Message complete = this::isComplete;
  private Payload next; // of the next call, or null
  private HostBuffer announced; // in the next call, in the place of its input; or null
  private long current;
  private int come; // ranks of this node that the leader knows to have arrived
  private long since; // this rank has arrived
  private long looked; // for notices

  /**
   * Creates the rendezvous of a group.
   *
   * @param memory {@link #bytes} for each rank of this node, by local ranks
   * @param notices of the group; closed by their owner
   * @param carries whether small contributions may travel with the calls; the same on all ranks
   * @param sums whether sums of them may
   */
  public MessageRendezvous(
      GroupTransport group,
      NodeLayout layout,
      NodeMemory memory,
      ArrivalNotices notices,
      boolean carries,
      boolean sums) {
    int payload = carries ? GatheredCalls.payloadBytes(group.size()) : 0;
    this.rank = group.rank();
    this.layout = layout;
    this.memory = memory;
    this.notices = notices;
    nodeSize = layout.ranksOf(layout.node()).size();
    leader = layout.ranksOf(layout.node()).get(0);
    node = new SharedMemoryRendezvous(memory, layout.localRank(), nodeSize, () -> {});
    int adding = sums ? nodeSize : 0;
    int bytes = GatheredCalls.bytes(group.size(), payload, adding);
    ByteBuffer table = memory.of(0).slice(SharedMemoryRendezvous.BYTES, bytes);
    calls = new GatheredCalls(table.order(ByteOrder.nativeOrder()), group.size(), payload, adding);
    sumRounds = sums && rank == leader ? new SumRounds(layout.nodes(), layout.node()) : null;
    exchange = rank == leader ? new LeaderExchange(group, layout, calls) : null;
    arrivals = new Message[group.size()];
    completions = new Message[group.size()];
    for (int i = 0; i < arrivals.length; i++) {
      int peer = i;
      arrivals[i] = () -> hasCome(peer) || look() && hasCome(peer);
      completions[i] = () -> isDoneWith(peer) || look() && isDoneWith(peer);
    }
  }

  /** Each rank is its own leader, so it needs no shared memory. */
  static MessageRendezvous withoutSharedMemory(
      GroupTransport group, ArrivalNotices notices, boolean carries) {
    NodeMemory memory = NodeMemory.ofOne(bytes(0, 1, group.size(), carries, false), null);
    NodeLayout layout = NodeLayout.ofSingles(group.ranks());
    return new MessageRendezvous(group, layout, memory, notices, carries, false);
  }

  public static int bytes(int localRank, int nodeSize, int ranks, boolean carries, boolean sums) {
    int payload = carries ? GatheredCalls.payloadBytes(ranks) : 0;
    int table = GatheredCalls.bytes(ranks, payload, sums ? nodeSize : 0);
    return SharedMemoryRendezvous.BYTES + (localRank == 0 ? table : 0);
  }

  private boolean isNear(int peer) {
    return layout.nodeOf(peer) == layout.node();
  }

  public SharedMemoryRendezvous node() {
    return node;
  }

  public NodeMemory memory() {
    return memory;
  }

  public GatheredCalls calls() {
    return calls;
  }

  /** The sums of this rank, or null if it is no leader or no sums travel. */
  public SumRounds sumRounds() {
    return sumRounds;
  }

  public int localRank() {
    return layout.localRank();
  }

  /** Sets what travels with this rank's next call: a contribution, or {@link LeaderSums}. */
  public void carry(Payload payload) {
    next = payload;
  }

  /** Sets the buffer that the node may map in this rank's next call; null for its input. */
  public void announce(HostBuffer buffer) {
    announced = buffer;
  }

  public int slot() {
    return Rendezvous.slot(current);
  }

  private int calling() {
    return areAllSame() ? 1 : arrivals.length;
  }

  /** Whether contributions of this size have travelled with the current calls of all ranks. */
  public boolean haveAllCarried(int bytes) {
    boolean have = true;
    for (int peer = 0; peer < calling() && have; peer++) {
      have = CallRecord.inlineBytes(call(peer)) == bytes;
    }
    return have;
  }

  /** Whether other ranks of its node can map the buffer of each rank. */
  public boolean canAllBeMapped() {
    boolean can = true;
    for (int peer = 0; peer < calling() && can; peer++) {
      can = CallRecord.memoryId(call(peer)) >= 0;
    }
    return can;
  }

  @Override
  public void arrive(long sequence, ByteBuffer record) {
    current = sequence;
    come = 0;
    since = System.nanoTime();
    looked = since;
    if (announced != null) {
      CallRecord.writePlace(record, announced.memoryId(), announced.memoryOffset());
      announced = null;
    }
    LeaderSums sums = next instanceof LeaderSums leaderSums ? leaderSums : null;
    if (next != null) {
      CallRecord.writeCarried(record, next.bytes(), sums != null);
      next.write(slot());
      next = null;
    }
    ByteBuffer entry = calls.entry(rank, slot());
    entry.put(0, record, 0, CallRecord.BYTES);
    if (CallRecord.memoryId(record) >= 0) {
      CallRecord.writePlace(entry, 0, 0); // its node finds the place in its own record
    }
    if (exchange != null) {
      exchange.begin(slot(), sums);
    }
    node.arrive(sequence, record);
  }

  /** Whether the calls of all ranks are there. A leader makes progress here. */
  private boolean isGathered() {
    if (exchange != null && !calls.isGathered(current)) {
      while (come < nodeSize && node.arrival(come).test()) {
        come++;
        if (come == nodeSize) {
          exchange.open();
        }
      }
      if (come == nodeSize) {
        exchange.advance(current);
      }
    }
    return calls.isGathered(current);
  }

  private boolean hasComeNear(int peer) {
    return isNear(peer) && node.arrival(layout.localRank(peer)).test();
  }

  private boolean hasCome(int peer) {
    return isNear(peer) ? hasComeNear(peer) : isGathered() || notices.hasArrived(peer, current);
  }

  private boolean isDoneWith(int peer) {
    boolean gathered = isGathered();
    return exchange != null ? exchange.isDoneWith(peer) : gathered || peer != leader;
  }

  /** Exchanges notices from time to time. Returns whether it did. */
  private boolean look() {
    long now = System.nanoTime();
    if (now - looked < LOOK_NANOS) {
      return false;
    }
    looked = now;
    notices.exchange(current, near, comeNear, now - since > TELL_NANOS);
    return true;
  }

  @Override
  public void awaitAll(MatchingGroup group) {
    for (int peer = next(-1); peer < arrivals.length; peer = next(peer)) {
      if (group.test(complete, peer)) {
        return;
      }
      group.await(arrivals[peer], peer, WaitPhase.RENDEZVOUS, current);
    }
    for (int peer = next(-1); peer < completions.length; peer = next(peer)) {
      if (group.test(complete, peer)) {
        return;
      }
      group.await(completions[peer], peer);
    }
  }

  /** The next of the other ranks. */
  private int next(int peer) {
    return peer + 1 == rank ? peer + 2 : peer + 1;
  }

  @Override
  public Message arrival(int peer) {
    return arrivals[peer];
  }

  /** Whether nobody has to be waited for. */
  private boolean isComplete() {
    return isGathered() && (exchange == null || exchange.isDone());
  }

  @Override
  public boolean areAllSame() {
    return calls.areSame(slot());
  }

  @Override
  public ByteBuffer call(int peer) {
    return calls.entry(areAllSame() ? rank : peer, slot());
  }

  @Override
  public void abandon(boolean inCall) {
    node.abandon(inCall);
    try {
      if (current > 0 && !calls.isGathered(current)) {
        // So that the others name the ranks that this one has missed.
        notices.exchange(current, near, comeNear, true);
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
}
