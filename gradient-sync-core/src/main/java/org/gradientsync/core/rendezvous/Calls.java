package org.gradientsync.core.rendezvous;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.DeviceCalls;

/**
 * The calls that a rank makes in a group: their number, the most recent ones, and the thread that
 * makes them. The caller holds the group's lock unless a method states otherwise.
 */
public final class Calls implements DeviceCalls {
  private final CallerThreads callerThreads;
  private final int ranks;
  private final FlightRecorder log = new FlightRecorder();
  private volatile WeakReference<Thread> caller = new WeakReference<>(null);
  private long met;
  private long before; // calls that the library made itself
  private long enqueued; // negative if unknown

  public Calls(CallerThreads callerThreads, int ranks) {
    this.callerThreads = callerThreads;
    this.ranks = ranks;
  }

  @Override
  public String describe(CollectiveCall call) {
    return CallRecord.describe(call, ranks);
  }

  /** Records a collective, and returns the record. */
  public ByteBuffer recordCollective(Origin origin, CollectiveCall call) {
    met++;
    return begin(number(), origin, call);
  }

  /** As above, for a call on host memory. */
  public ByteBuffer recordCollective(
      Origin origin, Kind kind, int element, long count, ReduceOp op, int root) {
    met++;
    return begin(number(), origin, kind, element, count, op, root, null);
  }

  /** As above, for a message. It has the number of the last collective. */
  public ByteBuffer recordMessage(CollectiveCall message) {
    return begin(number(), Origin.SYNC, message);
  }

  /** As above, for a message of host memory. */
  public void recordMessage(Kind kind, int element, long count, int tag) {
    begin(number(), Origin.COMMUNICATOR, kind, element, count, null, tag, null);
  }

  @Override
  public void enqueued(CollectiveCall call) {
    if (enqueued >= 0) {
      enqueued++;
    }
    begin(enqueued, Origin.SYNC, call);
    log.enqueued();
  }

  @Override
  public void enqueuedMessage() {
    log.enqueued();
  }

  private ByteBuffer begin(long number, Origin origin, CollectiveCall call) {
    boolean registers = origin == Origin.REGISTER; // for whatever operation
    return begin(
        number,
        origin,
        call.kind(),
        CallRecord.element(call.buffer().type()),
        CallRecord.count(call, ranks),
        registers ? null : call.op(),
        registers ? CallRecord.NO_ROOT : call.root(),
        call);
  }

  /** Allocates nothing, except for a thread's first call. */
  private ByteBuffer begin(
      long number,
      Origin origin,
      Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      CollectiveCall named) { // or null
    ByteBuffer call = log.next();
    CallRecord.write(call, number, origin, kind, element, count, op, root);
    CallRecord.writeOwn(call, enqueued, named);
    if (caller.get() != Thread.currentThread()) {
      caller = new WeakReference<>(Thread.currentThread());
      callerThreads.record(Thread.currentThread());
    }
    return call;
  }

  /** The number of the last collective, as users count. */
  public long number() {
    return met - before;
  }

  @Override
  public long met() {
    return met;
  }

  @Override
  public long count() {
    return enqueued;
  }

  @Override
  public void stopCounting() {
    enqueued = -1;
  }

  /** Restarts the numbers in messages. Every rank calls this after the same call. */
  public void countFromHere() {
    before = met;
    log.clear();
  }

  @Override
  public long pending() {
    return log.unsettled();
  }

  @Override
  public void done(long call) {
    log.settled(call);
  }

  @Override
  public String current() {
    return log.current();
  }

  /** The most recent calls. Any thread may read them. */
  public FlightRecorder log() {
    return log;
  }

  /** The thread that makes the calls, or null. Any thread may read it. */
  public Thread caller() {
    return caller.get();
  }
}
