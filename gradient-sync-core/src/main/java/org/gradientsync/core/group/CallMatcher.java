package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.core.backend.Condition;
import org.gradientsync.core.diagnosis.WatchedGroup;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.CallTable;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.core.rendezvous.WaitPhase;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Message;

/**
 * Brings the ranks of a group together for their calls, and compares what they ask for: all ranks
 * for a collective, two for an exchange. The caller holds the group's lock.
 */
public final class CallMatcher {
  private final WatchedGroup group;
  private final GroupState state;
  private final Wait wait;
  private final Condition complete; // nobody has to be waited for in a collective
  private long notFinite = -1;

  CallMatcher(WatchedGroup group, GroupState state, Wait wait) {
    this.group = group;
    this.state = state;
    this.wait = wait;
    complete = () -> group.arrivals().rendezvous().isComplete();
  }

  /** Meets all other ranks. Returns when all have arrived with the same call, otherwise throws. */
  void meet(Origin origin, CollectiveCall call) {
    state.requireUsable();
    meet(group.calls().record(origin, call), (AbstractDeviceBuffer) call.in());
  }

  public void meet(Origin origin, Kind kind, int element, long count, int root) {
    state.requireUsable();
    meet(group.calls().record(origin, kind, element, count, root), null);
  }

  private void meet(ByteBuffer record, AbstractDeviceBuffer buffer) {
    Rendezvous rendezvous = group.arrivals().beginRendezvous();
    long found = notFinite;
    notFinite = -1;
    CallRecord.writeNotFinite(record, found);
    long sequence = group.calls().met();
    try {
      rendezvous.arrive(sequence, record);
      awaitAll(rendezvous, sequence);
    } catch (RuntimeException | Error e) {
      if (state.isBroken()) {
        throw e;
      }
      throw state.inMiddle(e);
    }
    if (found < 0 && rendezvous.areAllSame()) {
      return;
    }
    ByteBuffer own = rendezvous.call(group.rank());
    boolean same = true;
    boolean sameEnqueued = true;
    boolean finite = found < 0;
    // All ranks must reach the same verdict. So ranks that know a name or a count are compared with
    // each other, whether or not this rank knows its own.
    ByteBuffer in = own;
    ByteBuffer out = own;
    ByteBuffer counted = own;
    for (int peer = 0; peer < group.size(); peer++) {
      ByteBuffer call = rendezvous.call(peer);
      same &= CallRecord.same(own, call);
      same &= CallRecord.sameName(in, call, CallRecord.INPUT);
      same &= CallRecord.sameName(out, call, CallRecord.OUTPUT);
      sameEnqueued &= CallRecord.sameEnqueued(counted, call);
      finite &= CallRecord.notFinite(call) < 0;
      in = CallRecord.hasName(in, CallRecord.INPUT) ? in : call;
      out = CallRecord.hasName(out, CallRecord.OUTPUT) ? out : call;
      counted = CallRecord.enqueued(counted) >= 0 ? counted : call;
    }
    if (same && sameEnqueued && finite) {
      return;
    }
    group.calls().finished();
    if (same && sameEnqueued) {
      throw new NotFiniteException(
          CallTable.ofNotFinite(rendezvous, group.rank(), group.size(), buffer));
    }
    String table = CallTable.ofMismatch(rendezvous, group.rank(), group.size(), !sameEnqueued);
    throw sameEnqueued
        ? new MismatchedCallException(table)
        : state.mismatched(table); // a device waits for a call that another rank has not made
  }

  private void awaitAll(Rendezvous rendezvous, long sequence) {
    int size = group.size();
    for (int peer = next(-1); peer < size && !state.test(complete, peer); peer = next(peer)) {
      wait.await(rendezvous.arrival(peer), peer, WaitPhase.RENDEZVOUS, sequence);
    }
    for (int peer = next(-1); peer < size && !state.test(complete, peer); peer = next(peer)) {
      wait.await(rendezvous.sent(peer), peer);
    }
  }

  private int next(int peer) {
    return peer + 1 == group.rank() ? peer + 2 : peer + 1;
  }

  /** Runs the part of a call after the rendezvous; what it throws breaks the group. */
  <C> void run(C call, Consumer<C> body) {
    try {
      body.accept(call);
    } catch (RuntimeException | Error e) {
      throw state.inMiddle(e);
    }
    group.calls().finished();
  }

  /** Records an exchange with single other ranks, or {@link RankMap#NO_RANK}. */
  public void beginPair(Kind kind, int element, long count, int destination, int source, int tag) {
    beginPair(tag);
    group.arrivals().addPeer(destination, true);
    group.arrivals().addPeer(source, false);
    group.calls().record(Origin.COMMUNICATOR, kind, element, count, tag);
  }

  /** As above, for calls that the caller adds and records. */
  void beginPair(int tag) {
    state.requireUsable();
    group.arrivals().beginPair(tag);
  }

  /** Waits for a rank that this one sends to, or receives from, until it reaches this round. */
  public void awaitPair(Message message, int peer, boolean sends) {
    WaitPhase phase = sends ? WaitPhase.SEND : WaitPhase.RECEIVE;
    wait.await(message, peer, phase, group.arrivals().rounds(peer, sends));
  }

  /** Announces at the next rendezvous the index of an element that is not finite, or -1. */
  public void found(long index) {
    notFinite = index;
  }
}
