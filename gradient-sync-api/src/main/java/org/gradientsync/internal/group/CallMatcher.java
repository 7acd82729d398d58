package org.gradientsync.internal.group;

import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.diagnosis.WatchedGroup;
import org.gradientsync.internal.host.HostBuffer;
import org.gradientsync.internal.matching.Arrivals;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.internal.matching.CallTable;
import org.gradientsync.internal.matching.Calls;
import org.gradientsync.internal.matching.InlinePayload;
import org.gradientsync.internal.matching.Rendezvous;
import org.gradientsync.internal.matching.WaitPhase;
import org.gradientsync.internal.ranks.RankMap;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Message;

/**
 * Brings the ranks of a group together for their calls, and compares what they ask for: all ranks,
 * or two. The group's lock is held.
 */
public final class CallMatcher {
  private final RankMap ranks;
  private final Calls calls;
  private final Arrivals arrivals;
  private final GroupState state;
  private final Wait wait;
  private long notFinite = -1;

  CallMatcher(WatchedGroup group, GroupState state, Wait wait) {
    this.ranks = group.ranks();
    this.calls = group.calls();
    this.arrivals = group.arrivals();
    this.state = state;
    this.wait = wait;
  }

  /**
   * Meets all other ranks and compares what they ask for. Returns when all have come and ask for
   * the same.
   *
   * @throws MismatchedCallException on every rank if they do not
   * @throws RankLostException if a rank does not come
   */
  public void meet(Call.Kind kind, int element, long count, ReduceOp op, int root) {
    meet(kind, element, count, op, root, null, null);
  }

  /** As above, for a call about a buffer. */
  public void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, int root) {
    AbstractDeviceBuffer own = (AbstractDeviceBuffer) buffer;
    meet(kind, Call.element(buffer.type()), buffer.count(), op, root, own, null);
  }

  /**
   * As above, for an all-reduce.
   *
   * @param payload this rank's contributions, to be sent at the same time, or null
   */
  public void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, InlinePayload payload) {
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
    state.requireUsable();
    Rendezvous rendezvous = arrivals.beginRendezvous();
    long found = notFinite;
    notFinite = -1;
    calls.meets(kind, element, count, op, root, buffer);
    long sequence = calls.met();
    ByteBuffer own = rendezvous.own(sequence);
    Call.write(own, calls.number(), kind, element, count, op, root);
    writePlace(own, buffer, payload);
    Call.writeOwn(own, calls.count(), found, buffer);
    rendezvous.load(payload);
    rendezvous.arrive(sequence);
    boolean same = true;
    boolean finite = found < 0;
    // All ranks have to find the same, so those that know something are compared with each other,
    // whether this one knows it or not.
    ByteBuffer named = own;
    ByteBuffer counted = own;
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        wait.await(rendezvous.arrival(peer), peer, WaitPhase.RENDEZVOUS, sequence);
        ByteBuffer call = rendezvous.call(peer);
        same &= Call.same(own, call);
        same &= Call.sameName(named, call) && Call.sameEnqueued(counted, call);
        named = Call.hasName(named) ? named : call;
        counted = Call.enqueued(counted) >= 0 ? counted : call;
        finite &= Call.notFinite(call) < 0;
      }
    }
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        wait.await(rendezvous.sent(peer), peer);
      }
    }
    if (same && finite) {
      return;
    }
    calls.log().finished();
    int rank = ranks.rank();
    int size = ranks.size();
    throw same
        ? new NotFiniteException(CallTable.ofNotFinite(rendezvous, rank, size, buffer))
        : new MismatchedCallException(CallTable.ofMismatch(rendezvous, rank, size));
  }

  /** Where the others find this rank's elements. */
  private static void writePlace(
      ByteBuffer call, AbstractDeviceBuffer buffer, InlinePayload payload) {
    if (payload != null) {
      Call.writePlace(call, Call.INLINE, 0);
    } else if (buffer instanceof HostBuffer host) {
      Call.writePlace(call, host.memoryId(), host.memoryOffset());
    } else {
      Call.writePlace(call, Call.NOWHERE, 0);
    }
  }

  /**
   * Records a call with single other ranks.
   *
   * @param destination the rank to send to, or {@link RankMap#NO_RANK}
   * @param source the rank to receive from, or {@link RankMap#NO_RANK}
   */
  public void beginPair(
      Call.Kind kind, int element, long count, int destination, int source, int tag) {
    state.requireUsable();
    arrivals.beginPair(destination, source, tag);
    calls.pairs(kind, element, count, tag);
  }

  /** Waits for a rank that this one sends to, to come to this round. */
  public void awaitReceiver(Message message, int peer) {
    wait.await(message, peer, WaitPhase.SEND, arrivals.pairs().roundsSentTo(peer));
  }

  /** Waits for a rank that this one receives from, to come to this round. */
  public void awaitSender(Message message, int peer) {
    wait.await(message, peer, WaitPhase.RECEIVE, arrivals.pairs().roundsReceivedFrom(peer));
  }

  /**
   * At the next rendezvous all ranks learn that this one has an element that is not finite; all of
   * them throw.
   *
   * @param index of the first such element, or a negative number if there is none
   */
  void found(long index) {
    notFinite = index;
  }
}
