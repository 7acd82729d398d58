package org.gradientsync.core.rendezvous;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.DeviceCalls;

/**
 * The calls that a rank makes in a group: their number, the thread that makes them, and the most
 * recent ones, for error messages and reports. The thread that holds the group's lock writes; a
 * thread that reads without the lock may see a partly written call.
 */
public final class Calls implements DeviceCalls {
  private static final int LENGTH = 32;

  private final Set<Long> callerThreads; // the ids of those of all groups, up to two
  private final int ranks;
  private volatile WeakReference<Thread> caller = new WeakReference<>(null);
  private long met;
  private long before; // calls that the library made itself
  private long enqueued; // negative if unknown
  private Origin origin = Origin.SYNC; // of calls on device buffers

  // The most recent calls, each in the slot of its number.
  private final ByteBuffer[] records = new ByteBuffer[LENGTH];
  private final long[] began = new long[LENGTH];
  private final AtomicLong recorded = new AtomicLong();
  private volatile ByteBuffer shown; // the message of several that this rank waits for, or null

  // The end of each call in nanoseconds; 0 while it runs. A call that was enqueued on a device has
  // its negative number here, so that its completion is not applied to a newer one in its slot.
  private final AtomicLongArray ended = new AtomicLongArray(LENGTH);

  public Calls(Set<Long> callerThreads, int ranks) {
    this.callerThreads = callerThreads;
    this.ranks = ranks;
    Arrays.setAll(records, call -> CallRecord.allocate());
  }

  @Override
  public String describe(CollectiveCall call) {
    ByteBuffer record = CallRecord.allocate();
    CallRecord.write(record, 0, 0, Origin.SYNC, call, ranks);
    return CallRecord.describe(record);
  }

  public Origin origin() {
    return origin;
  }

  /** Sets the origin of the calls on device buffers that follow. */
  public void setOrigin(Origin newOrigin) {
    origin = newOrigin;
  }

  /** Records a call, and returns the record. A message has the number of the last collective. */
  public ByteBuffer record(Origin origin, CollectiveCall call) {
    met += call.kind().isMessage() ? 0 : 1;
    return begin(met - before, origin, call);
  }

  @Override
  public void enqueues(CollectiveCall call) {
    enqueued += enqueued < 0 ? 0 : 1;
    begin(enqueued, origin, call);
    enqueuedMessage();
  }

  @Override
  public void enqueuedMessage() {
    ended.lazySet(last(0), -recorded.get());
  }

  /** Allocates only for a thread's first call. */
  private ByteBuffer begin(long number, Origin origin, CollectiveCall call) {
    if (caller.get() != Thread.currentThread()) {
      caller = new WeakReference<>(Thread.currentThread());
      if (callerThreads.size() < 2) {
        callerThreads.add(Thread.currentThread().getId());
      }
    }
    int at = at(recorded.get() + 1);
    ended.lazySet(at, 0);
    began[at] = System.nanoTime();
    recorded.lazySet(recorded.get() + 1); // a full fence would cost a tenth of a small call
    hide();
    CallRecord.write(records[at], number, enqueued, origin, call, ranks);
    return records[at];
  }

  /** Marks the last call, and the calls that it is a part of, as finished. */
  public void finished() {
    long now = System.nanoTime();
    hide();
    for (int back = 0; back < held() && ended.get(last(back)) == 0; back++) {
      ended.lazySet(last(back), now);
    }
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
    recorded.set(0);
  }

  @Override
  public long pending() {
    long last = recorded.get();
    return last > 0 && ended.get(at(last)) == -last ? last : 0;
  }

  @Override
  public void done(long call) {
    long now = System.nanoTime();
    long done = call;
    while (done > 0 && ended.compareAndSet(at(done), -done, now)) {
      done--;
    }
  }

  public boolean isRunning() {
    return recorded.get() > 0 && ended.get(last(0)) == 0;
  }

  /** Shows another record as the last call, until the end of that or the next one. */
  public void show(ByteBuffer record) {
    shown = record;
  }

  private void hide() {
    if (shown != null) { // usually it is null, and writing costs a fence
      shown = null;
    }
  }

  /** The last call. There must have been one. */
  public ByteBuffer currentBytes() {
    ByteBuffer instead = shown;
    return instead != null ? instead : records[last(0)];
  }

  /** The last call as users see it, or "none". */
  @Override
  public String current() {
    return recorded.get() > 0 ? CallRecord.describe(currentBytes()) : "none";
  }

  /** The last finished call as users see it, or "none". */
  public String lastFinished() {
    return IntStream.range(0, held())
        .filter(this::isOver)
        .mapToObj(back -> CallRecord.describe(records[last(back)]))
        .findFirst()
        .orElse("none");
  }

  /** The number of calls that are recorded. Any thread may ask. */
  public long begun() {
    return recorded.get();
  }

  public Thread caller() {
    return caller.get();
  }

  /** The time in nanoseconds since the last call finished, or began if it is running. */
  public long sinceLast() {
    return System.nanoTime() - (isOver(0) ? ended.get(last(0)) : began[last(0)]);
  }

  /** The most recent calls, oldest first. */
  public List<String> lines() {
    long now = System.nanoTime();
    List<String> lines = new ArrayList<>();
    for (int back = held() - 1; back >= 0; back--) {
      int at = last(back);
      String ago = Amounts.time(Math.max(0, now - began[at]));
      String outcome = ended.get(at) == 0 ? "has not ended" : "enqueued on the device";
      if (isOver(back)) {
        outcome = "took " + Amounts.time(ended.get(at) - began[at]);
      }
      lines.add(CallRecord.describe(records[at]) + ", began " + ago + " ago, " + outcome);
    }
    return lines;
  }

  /** Whether one of the most recent calls has this origin. */
  public boolean include(Origin asked) {
    return IntStream.range(0, held())
        .anyMatch(back -> CallRecord.origin(records[last(back)]) == asked);
  }

  private boolean isOver(int back) {
    long call = recorded.get() - back;
    long when = ended.get(at(call));
    return when != 0 && when != -call;
  }

  private int held() {
    return (int) Math.min(recorded.get(), LENGTH);
  }

  private int last(int back) {
    return at(recorded.get() - back);
  }

  /** The slot of a call with this number, counted from 1. */
  private static int at(long call) {
    return (int) Math.floorMod(call - 1, (long) LENGTH);
  }
}
