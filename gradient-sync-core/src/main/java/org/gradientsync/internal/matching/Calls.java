package org.gradientsync.internal.matching;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.DeviceCalls;

/**
 * The calls that a rank makes in a group: their number, the most recent ones, and the thread that
 * makes them. The caller holds the group's lock unless a method states otherwise.
 */
public final class Calls implements DeviceCalls {
  private final CallerThreads callerThreads;
  private final FlightRecorder log = new FlightRecorder();
  private volatile WeakReference<Thread> caller = new WeakReference<>(null);
  private long met;
  private long before; // calls that the library made itself
  private long enqueued; // negative if unknown

  public Calls(CallerThreads callerThreads) {
    this.callerThreads = callerThreads;
  }

  /**
   * Records a collective, and returns the record. Allocates nothing, except for a thread's first
   * call.
   */
  public ByteBuffer meets(
      Call.Kind kind, int element, long count, ReduceOp op, int root, AbstractDeviceBuffer buffer) {
    met++;
    return begin(number(), kind, element, count, op, root, buffer);
  }

  /** Records an exchange with single other ranks. It has the number of the last collective. */
  public void pairs(Call.Kind kind, int element, long count, int tag) {
    pairs(kind, element, count, tag, null);
  }

  /** As above, for a message on device memory, to or from a peer; returns the record. */
  public ByteBuffer pairs(
      Call.Kind kind, int element, long count, int peer, AbstractDeviceBuffer buffer) {
    return begin(number(), kind, element, count, null, peer, buffer);
  }

  @Override
  public void enqueued(DeviceBuffer buffer, ReduceOp op, int root) {
    if (enqueued >= 0) {
      enqueued++;
    }
    begin(
        enqueued,
        op == null ? Call.Kind.BROADCAST : Call.Kind.ALL_REDUCE,
        Call.element(buffer.type()),
        ((AbstractDeviceBuffer) buffer).usedCount(),
        op,
        op == null ? root : Call.NO_ROOT,
        (AbstractDeviceBuffer) buffer);
    log.enqueued();
  }

  @Override
  public void enqueued(
      Collective collective, DeviceBuffer in, DeviceBuffer out, long count, ReduceOp op, int root) {
    if (enqueued >= 0) {
      enqueued++;
    }
    ByteBuffer call =
        begin(
            enqueued,
            Call.Kind.of(collective),
            Call.element((in != null ? in : out).type()),
            count,
            op,
            collective.hasRoot() ? root : Call.NO_ROOT,
            null);
    Call.writeNames(call, collective, (AbstractDeviceBuffer) in, (AbstractDeviceBuffer) out);
    log.enqueued();
  }

  @Override
  public void enqueuedMessage() {
    log.enqueued();
  }

  private ByteBuffer begin(
      long number,
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      AbstractDeviceBuffer buffer) { // or null
    ByteBuffer call = log.next();
    Call.write(call, number, kind, element, count, op, root);
    Call.writeOwn(call, enqueued, buffer);
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
