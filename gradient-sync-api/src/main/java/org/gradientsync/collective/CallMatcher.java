package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.host.HostBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * How the ranks of a group come together for their calls: all of them, or two. The group's lock is
 * held, if nothing else is said.
 */
final class CallMatcher implements AutoCloseable {
  /** Instead of a memory's id, for what no other rank can map. */
  private static final long NOWHERE = -1;

  /** Instead of a memory's id, for elements that have come with the call. */
  private static final long BEHIND_THE_CALL = -2;

  private final ProcessGroup group;
  private final RankMap members;
  private final Calls calls;
  private final Pairs pairs;
  private final MessageRendezvous messages;
  private MessageRendezvous carrier; // or null
  private Rendezvous rendezvous;
  private long notFinite = -1;
  private boolean pair; // the last call was one with single other ranks

  /**
   * By messages at first.
   *
   * @param group which can send and receive already
   * @param channel for these messages
   */
  CallMatcher(ProcessGroup group, RankMap members, Calls calls, int channel) {
    this.group = group;
    this.members = members;
    this.calls = calls;
    pairs = new Pairs(members.size());
    messages = new MessageRendezvous(group, channel, 0);
    rendezvous = messages;
  }

  /**
   * Meets all other ranks and compares what they ask for. Returns when all have come and ask for
   * the same.
   *
   * @throws MismatchedCallException on every rank if they do not
   * @throws RankLostException if a rank does not come
   */
  void meet(Call.Kind kind, int element, long count, ReduceOp op, int root) {
    meet(kind, element, count, op, root, null, null);
  }

  /** As above, for a call about a buffer. */
  void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, int root) {
    AbstractDeviceBuffer own = (AbstractDeviceBuffer) buffer;
    meet(kind, Call.element(buffer.type()), buffer.count(), op, root, own, null);
  }

  /**
   * As above, for an all-reduce.
   *
   * @param payload this rank's contributions, to be sent at the same time, or null
   */
  void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, InlinePayload payload) {
    AbstractDeviceBuffer own = (AbstractDeviceBuffer) buffer;
    meet(kind, Call.element(buffer.type()), buffer.count(), op, Call.NO_ROOT, own, payload);
  }

  private void meet(
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      AbstractDeviceBuffer buffer, // or null
      InlinePayload payload) {
    group.requireUsable();
    pair = false;
    long found = notFinite;
    notFinite = -1;
    calls.meets(kind, element, count, op, root, buffer);
    long sequence = calls.met();
    ByteBuffer own = rendezvous.own(sequence);
    Call.write(own, calls.number(), kind, element, count, op, root);
    writePlace(own, buffer, payload);
    Call.writeOwn(own, calls.enqueued(), found, buffer);
    rendezvous.load(payload);
    rendezvous.come(sequence);
    boolean same = true;
    boolean finite = found < 0;
    // All ranks have to find the same, so those that know something are compared with each other,
    // whether this one knows it or not.
    ByteBuffer named = own;
    ByteBuffer counted = own;
    for (int peer = 0; peer < members.size(); peer++) {
      if (peer != members.rank()) {
        group.await(rendezvous.arrival(peer), peer, PendingWait.Phase.MEETING, sequence);
        ByteBuffer call = rendezvous.call(peer);
        same &= Call.same(own, call);
        same &= Call.sameName(named, call) && Call.sameEnqueued(counted, call);
        named = Call.hasName(named) ? named : call;
        counted = Call.enqueued(counted) >= 0 ? counted : call;
        finite &= Call.notFinite(call) < 0;
      }
    }
    for (int peer = 0; peer < members.size(); peer++) {
      if (peer != members.rank()) {
        group.await(rendezvous.told(peer), peer);
      }
    }
    if (same && finite) {
      return;
    }
    calls.log().finished();
    int rank = members.rank();
    int size = members.size();
    throw same
        ? new NotFiniteException(CallTable.ofNotFinite(rendezvous, rank, size, buffer))
        : new MismatchedCallException(CallTable.ofMismatch(rendezvous, rank, size));
  }

  /** Where the others find this rank's elements. */
  private static void writePlace(
      ByteBuffer call, AbstractDeviceBuffer buffer, InlinePayload payload) {
    if (payload != null) {
      Call.writePlace(call, BEHIND_THE_CALL, 0);
    } else if (buffer instanceof HostBuffer host) {
      Call.writePlace(call, host.memoryId(), host.memoryOffset());
    } else {
      Call.writePlace(call, NOWHERE, 0);
    }
  }

  /**
   * Notes what this rank is doing with single others, for the messages of exceptions.
   *
   * @param destination the rank to send to, or {@link ProcessGroup#NO_RANK}
   * @param source the rank to receive from, or {@link ProcessGroup#NO_RANK}
   */
  void beginPair(Call.Kind kind, int element, long count, int destination, int source, int tag) {
    group.requireUsable();
    pair = true;
    pairs.begin(destination, source, tag);
    calls.pairs(kind, element, count, tag);
  }

  /** How far this rank has come with single others. */
  Pairs pairs() {
    return pairs;
  }

  /** Whether the last call is one with single others. */
  boolean isPair() {
    return pair;
  }

  /** Waits for a rank that this one sends to, to come to this round. */
  void awaitReceiver(Message message, int peer) {
    group.await(message, peer, PendingWait.Phase.SEND, pairs.roundsSentTo(peer));
  }

  /** Waits for a rank that this one receives from, to come to this round. */
  void awaitSender(Message message, int peer) {
    group.await(message, peer, PendingWait.Phase.RECEIVE, pairs.roundsReceivedFrom(peer));
  }

  /** See {@link ProcessGroup#found}. */
  void found(long index) {
    notFinite = index;
  }

  /**
   * Meets by messages that can bring a {@link InlinePayload}; every rank does so after the same
   * call.
   */
  void meetWithPayload() {
    carrier =
        new MessageRendezvous(group, ProcessGroup.PAYLOAD, InlinePayload.most(members.size()));
    meetOn(carrier);
  }

  /** Meets in another way from the next call on; every rank does so after the same call. */
  void meetOn(Rendezvous newRendezvous) {
    rendezvous = newRendezvous;
  }

  /** How many bytes a {@link InlinePayload} may have for each rank; the same on all ranks. */
  int payloadBytes() {
    return rendezvous.payloadBytes();
  }

  /** Whether a rank has sent its contribution with the call in which the ranks have met. */
  boolean hasBrought(int peer) {
    return Call.memoryId(rendezvous.call(peer)) == BEHIND_THE_CALL;
  }

  /** Where such a contribution lies, from call to call. */
  ByteBuffer broughtBy(int peer, int bytes) {
    return rendezvous.call(peer).slice(Call.BYTES, bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * Whether this rank has come to the call that another one waits for. It never says no after yes.
   * With this group's lock, or where one thread makes all calls.
   *
   * @param number see {@link PendingWait}
   * @param worldRank that of the rank that waits
   */
  boolean hasComeTo(PendingWait.Phase phase, long number, int tag, int worldRank) {
    int peer = members.find(worldRank);
    if (peer == ProcessGroup.NO_RANK) {
      return true;
    }
    return switch (phase) {
      case MEETING -> calls.met() >= number;
      case SEND -> pairs.reachedAsReceiver(peer, tag) >= number;
      case RECEIVE -> pairs.reachedAsSender(peer, tag) >= number;
      case DATA -> true;
    };
  }

  /** Whether a rank is known to have come to the call that this one is in. */
  boolean hasCome(int peer) {
    try {
      return !pair && rendezvous.arrival(peer).test();
    } catch (GradientSyncException e) {
      return false;
    }
  }

  /** For whom a call waits that waits for a rank. */
  String awaited(int peer) {
    return pair ? members.name(peer) : missing(peer);
  }

  /** Who has not come, or has come and not done its part, and what it did last. */
  String late(int peer) {
    if (pair) {
      return members.name(peer)
          + " did not join in time, lastFinished="
          + calls.log().lastFinished();
    }
    // All ranks finish a call before the next, so what this one has finished, the others have.
    return missing(peer)
        + (group.test(rendezvous.arrival(peer), peer)
            ? " came and did not do its part"
            : " did not join")
        + " in time, lastFinished="
        + calls.log().lastFinished();
  }

  private String missing(int waitedFor) {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < members.size(); peer++) {
      if (peer != members.rank() && !group.test(rendezvous.arrival(peer), peer)) {
        missing.add(peer);
      }
    }
    return missing.size() > 1 ? members.names(missing) : members.name(waitedFor);
  }

  /** Lets the others know that this rank has given up in the middle of a call. */
  void abandon() {
    rendezvous.abandon();
  }

  /** Whether a rank has given up in the middle of a call. */
  boolean isAbandoned(int peer) {
    return rendezvous.abandoned(peer);
  }

  /** Ends the messages; whoever {@linkplain #meetOn chose} another way closes that. */
  @Override
  public void close() {
    Resources.closeAll(messages, carrier);
  }
}
