package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;

/**
 * Brings all ranks of a group together for a collective, and compares what they ask for. The caller
 * holds the group's lock.
 */
public final class CallMatcher {
  private final MatchingGroup group;
  private final Calls calls;
  private final Arrivals arrivals;
  private long notFinite = -1;

  public CallMatcher(MatchingGroup group) {
    this.group = group;
    calls = group.parts().calls();
    arrivals = group.parts().arrivals();
  }

  /** Meets all other ranks. Returns when all have arrived with the same call, otherwise throws. */
  public void meet(Origin origin, CollectiveCall call) {
    group.requireUsable();
    ByteBuffer record = calls.record(origin, call);
    Rendezvous rendezvous = arrivals.beginRendezvous();
    long found = notFinite;
    notFinite = -1;
    CallRecord.writeNotFinite(record, found);
    try {
      rendezvous.arrive(calls.met(), record);
      rendezvous.awaitAll(group);
    } catch (RuntimeException | Error e) {
      throw group.failed(e);
    }
    if (found < 0 && areAllSame(rendezvous)) {
      return;
    }
    ByteBuffer own = rendezvous.call(group.rank());
    boolean same = true;
    boolean sameEnqueued = true;
    boolean finite = found < 0;
    // All ranks must reach the same verdict. So ranks that give a name or a count are compared with
    // each other, even if this rank gives none.
    ByteBuffer in = own;
    ByteBuffer out = own;
    ByteBuffer counted = own;
    for (int peer = 0; peer < group.size(); peer++) {
      ByteBuffer other = rendezvous.call(peer);
      same &= CallRecord.same(own, other);
      same &= CallRecord.sameName(in, other, CallRecord.INPUT);
      same &= CallRecord.sameName(out, other, CallRecord.OUTPUT);
      sameEnqueued &= CallRecord.sameEnqueued(counted, other);
      finite &= CallRecord.notFinite(other) < 0;
      in = CallRecord.hasName(in, CallRecord.INPUT) ? in : other;
      out = CallRecord.hasName(out, CallRecord.OUTPUT) ? out : other;
      counted = CallRecord.enqueued(counted) >= 0 ? counted : other;
    }
    if (same && sameEnqueued && finite) {
      return;
    }
    calls.finished();
    if (same && sameEnqueued) {
      throw verdict(
          new NotFiniteException(
              CallTable.ofNotFinite(
                  rendezvous, group.rank(), group.size(), (AbstractDeviceBuffer) call.in())));
    }
    String table = CallTable.ofMismatch(rendezvous, group.rank(), group.size(), !sameEnqueued);
    List<Integer> thrown =
        IntStream.range(0, group.size())
            .filter(peer -> CallRecord.origin(rendezvous.call(peer)) == Origin.UPDATE_THROWN)
            .boxed()
            .toList();
    if (!thrown.isEmpty()) { // these ranks have not updated their shards, and the others have
      throw group.broken(
          "an update of sharded buckets has thrown on " + group.names(thrown),
          new MismatchedCallException(table));
    }
    throw verdict(
        sameEnqueued
            ? new MismatchedCallException(table)
            : group.mismatched(table)); // a device waits for a call that a rank has not made
  }

  /** The usual case, in which nobody has to find out what differs. */
  private boolean areAllSame(Rendezvous rendezvous) {
    if (rendezvous.areAllSame()) {
      return true;
    }
    ByteBuffer own = rendezvous.call(group.rank());
    for (int peer = next(-1); peer < group.size(); peer = next(peer)) {
      if (!CallRecord.sameInAll(own, rendezvous.call(peer))) {
        return false;
      }
    }
    return true;
  }

  private RuntimeException verdict(RuntimeException e) {
    group.thrownByAll(e);
    return e;
  }

  private int next(int peer) {
    return peer + 1 == group.rank() ? peer + 2 : peer + 1;
  }

  /** Announces at the next rendezvous the index of an element that is not finite, or -1. */
  public void found(long index) {
    notFinite = index;
  }
}
