package org.gradientsync.internal.matching;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.DeviceCalls;

/**
 * The calls that a rank makes in a group: how many there were, which are the last ones, and who
 * makes them. The group's lock is held, if nothing else is said.
 */
public final class Calls implements DeviceCalls {
  private final CallerThreads callerThreads;
  private final FlightRecorder log = new FlightRecorder();
  private volatile WeakReference<Thread> caller = new WeakReference<>(null);
  private long met;
  private long before; // calls that the library made itself, which no user wants to count
  private long enqueued; // negative if they cannot be counted

  public Calls(CallerThreads callerThreads) {
    this.callerThreads = callerThreads;
  }

  /** Notes a call in which the ranks meet. Allocates nothing, but for a thread's first call. */
  public void meets(
      Call.Kind kind, int element, long count, ReduceOp op, int root, AbstractDeviceBuffer buffer) {
    met++;
    begin(number(), kind, element, count, op, root, buffer);
  }

  /** Notes a call with single other ranks, which has the number of the last one that met. */
  public void pairs(Call.Kind kind, int element, long count, int tag) {
    begin(number(), kind, element, count, null, tag, null);
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
        buffer.count(),
        op,
        op == null ? root : Call.NO_ROOT,
        (AbstractDeviceBuffer) buffer);
    log.enqueued();
  }

  private void begin(
      long number,
      Call.Kind kind,
      int element,
      long count,
      ReduceOp op,
      int root,
      AbstractDeviceBuffer buffer) { // or null
    ByteBuffer call = log.next();
    Call.write(call, number, kind, element, count, op, root);
    Call.writeOwn(call, enqueued, -1, buffer);
    if (caller.get() != Thread.currentThread()) {
      caller = new WeakReference<>(Thread.currentThread());
      callerThreads.record(Thread.currentThread());
    }
  }

  /** The number of the last call that met, as a user counts. */
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

  /** Counts calls from here on, for messages; every rank calls this after the same call. */
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

  /** The last calls. Read by any thread. */
  public FlightRecorder log() {
    return log;
  }

  /** Who makes the calls, or null. Read by any thread. */
  public Thread caller() {
    return caller.get();
  }
}
