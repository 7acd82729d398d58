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
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.Message;

/**
 * Brings the ranks of a group together for their calls, and compares what they ask for: all ranks
 * for a collective, two for an exchange. The caller holds the group's lock.
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
   * Meets all other ranks and compares their calls. Returns when all ranks have arrived with the
   * same call.
   *
   * @throws MismatchedCallException on every rank if the calls differ
   * @throws RankLostException if a rank does not arrive
   */
  public void meet(Call.Kind kind, int element, long count, ReduceOp op, int root) {
    meet(kind, element, count, op, root, null, null, null, null);
  }

  /** As above, for a call on a buffer. */
  public void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, int root) {
    AbstractDeviceBuffer own = (AbstractDeviceBuffer) buffer;
    meet(kind, Call.element(buffer.type()), own.usedCount(), op, root, null, own, null, null);
  }

  /**
   * As above, for an all-reduce.
   *
   * @param payload this rank's contributions, sent at the same time, or null
   */
  public void meet(Call.Kind kind, DeviceBuffer buffer, ReduceOp op, InlinePayload payload) {
    AbstractDeviceBuffer own = (AbstractDeviceBuffer) buffer;
    int element = Call.element(buffer.type());
    meet(kind, element, own.usedCount(), op, Call.NO_ROOT, null, own, null, payload);
  }

  /** As above, for a collective with an input and an output, either of which may be null. */
  void meet(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    meet(
        Call.Kind.of(collective),
        Call.element((in != null ? in : out).type()),
        collective.blockCount(in, out, ranks.size()),
        op,
        collective.hasRoot() ? root : Call.NO_ROOT,
        collective,
        (AbstractDeviceBuffer) in,
        (AbstractDeviceBuffer) out,
        null);
  }

  private void meet(
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      Collective collective, // or null
      AbstractDeviceBuffer in, // what other ranks may read in place, or null
      AbstractDeviceBuffer out, // of a collective, or null
      InlinePayload payload) {
    state.requireUsable();
    Rendezvous rendezvous = arrivals.beginRendezvous();
    long found = notFinite;
    notFinite = -1;
    ByteBuffer record = calls.meets(kind, element, count, op, root, in);
    if (collective != null) {
      Call.writeNames(record, collective, in, out);
    }
    writePlace(record, in, payload);
    Call.writeNotFinite(record, found);
    long sequence = calls.met();
    ByteBuffer own = rendezvous.own(sequence);
    own.put(0, record, 0, Call.BYTES);
    rendezvous.load(payload);
    rendezvous.arrive(sequence);
    awaitAll(rendezvous, sequence);
    boolean same =
        sameNames(rendezvous, own, Call.INPUT) && sameNames(rendezvous, own, Call.OUTPUT);
    boolean finite = found < 0;
    // All ranks must reach the same verdict. So ranks that know a name or a count are compared with
    // each other, whether or not this rank knows its own.
    ByteBuffer counted = own;
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        ByteBuffer call = rendezvous.call(peer);
        same &= Call.same(own, call) && Call.sameEnqueued(counted, call);
        counted = Call.enqueued(counted) >= 0 ? counted : call;
        finite &= Call.notFinite(call) < 0;
      }
    }
    if (same && finite) {
      return;
    }
    calls.log().finished();
    int rank = ranks.rank();
    int size = ranks.size();
    throw same
        ? new NotFiniteException(CallTable.ofNotFinite(rendezvous, rank, size, in))
        : new MismatchedCallException(CallTable.ofMismatch(rendezvous, rank, size));
  }

  private boolean sameNames(Rendezvous rendezvous, ByteBuffer own, int which) {
    boolean same = true;
    ByteBuffer named = own;
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        ByteBuffer call = rendezvous.call(peer);
        same &= Call.sameName(named, call, which);
        named = Call.hasName(named, which) ? named : call;
      }
    }
    return same;
  }

  private void awaitAll(Rendezvous rendezvous, long sequence) {
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        wait.await(rendezvous.arrival(peer), peer, WaitPhase.RENDEZVOUS, sequence);
      }
    }
    for (int peer = 0; peer < ranks.size(); peer++) {
      if (peer != ranks.rank()) {
        wait.await(rendezvous.sent(peer), peer);
      }
    }
  }

  /** Adds where the others find this rank's elements. */
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
   * Records an exchange with single other ranks.
   *
   * @param destination the rank to send to, or {@link RankMap#NO_RANK}
   * @param source the rank to receive from, or {@link RankMap#NO_RANK}
   */
  public void beginPair(
      Call.Kind kind, int element, long count, int destination, int source, int tag) {
    beginPair(destination, source, tag);
    calls.pairs(kind, element, count, tag);
  }

  /** As above, for a call that the caller records. */
  void beginPair(int destination, int source, int tag) {
    state.requireUsable();
    arrivals.beginPair(destination, source, tag);
  }

  /** Waits for the rank that this one sends to, until it reaches the current round. */
  public void awaitReceiver(Message message, int peer) {
    wait.await(message, peer, WaitPhase.SEND, arrivals.pairs().roundsSentTo(peer));
  }

  /** Waits for the rank that this one receives from, until it reaches the current round. */
  public void awaitSender(Message message, int peer) {
    wait.await(message, peer, WaitPhase.RECEIVE, arrivals.pairs().roundsReceivedFrom(peer));
  }

  /**
   * Announces at the next rendezvous that this rank has an element that is not finite. All ranks
   * then throw.
   *
   * @param index of the first such element, or a negative number if there is none
   */
  void found(long index) {
    notFinite = index;
  }
}
