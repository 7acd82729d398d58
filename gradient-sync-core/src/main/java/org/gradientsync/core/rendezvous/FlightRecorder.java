package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLongArray;
import org.gradientsync.core.backend.Amounts;

/**
 * The most recent calls of a group, for error messages and reports. The thread that holds the
 * group's lock writes; a thread that reads without the lock may see a partly written call.
 */
public final class FlightRecorder {
  private static final int LENGTH = 32;

  private final ByteBuffer[] calls = new ByteBuffer[LENGTH];
  private final long[] began = new long[LENGTH];

  /**
   * The end of each call in nanoseconds; 0 while it runs. A call that was enqueued on a device has
   * its negative number here, so that the completion of an old call is not applied to a newer one
   * in the same slot.
   */
  private final AtomicLongArray ended = new AtomicLongArray(LENGTH);

  private volatile long count;

  public FlightRecorder() {
    for (int i = 0; i < LENGTH; i++) {
      calls[i] = ByteBuffer.allocate(CallRecord.BYTES).order(ByteOrder.nativeOrder());
    }
  }

  /** Begins a call and returns the memory to write it to. Allocates nothing. */
  public ByteBuffer next() {
    int at = at(count + 1);
    ended.lazySet(at, 0);
    began[at] = System.nanoTime();
    count++;
    return calls[at];
  }

  /** Marks the last call, and the calls that it is a part of, as finished. */
  public void finished() {
    long now = System.nanoTime();
    for (int back = 0; back < Math.min(count, LENGTH) && ended.get(last(back)) == 0; back++) {
      ended.lazySet(last(back), now);
    }
  }

  /** Marks the last call as enqueued on a device, where it will finish. */
  void enqueued() {
    ended.lazySet(last(0), -count);
  }

  /** The number of the last call if it is on a device and may not have finished; otherwise 0. */
  long unsettled() {
    long last = count;
    return last > 0 && ended.get(at(last)) == -last ? last : 0;
  }

  /** Marks all enqueued calls up to the one with this number as finished. */
  void settled(long call) {
    long now = System.nanoTime();
    long done = call;
    while (done > 0 && ended.compareAndSet(at(done), -done, now)) {
      done--;
    }
  }

  void clear() {
    count = 0;
  }

  /** Whether a call has begun and not finished. */
  public boolean isRunning() {
    return count > 0 && ended.get(last(0)) == 0;
  }

  /** The last call. There must have been one. */
  public ByteBuffer currentBytes() {
    return calls[last(0)];
  }

  /** The last call as users see it, or "none". */
  public String current() {
    return count > 0 ? CallRecord.describe(calls[last(0)]) : "none";
  }

  /** The last finished call as users see it, or "none". */
  public String lastFinished() {
    for (int back = 0; back < Math.min(count, LENGTH); back++) {
      if (isOver(back)) {
        return CallRecord.describe(calls[last(back)]);
      }
    }
    return "none";
  }

  public boolean isEmpty() {
    return count == 0;
  }

  /** The time in nanoseconds since the last call finished, or began if it is running. */
  public long sinceLast() {
    int at = last(0);
    return System.nanoTime() - (isOver(0) ? ended.get(at) : began[at]);
  }

  /** The recorded calls, oldest first. */
  public List<String> lines() {
    long now = System.nanoTime();
    List<String> lines = new ArrayList<>();
    for (int back = (int) Math.min(count, LENGTH) - 1; back >= 0; back--) {
      int at = last(back);
      String ago = Amounts.time(Math.max(0, now - began[at]));
      lines.add(CallRecord.describe(calls[at]) + ", began " + ago + " ago, " + outcome(back));
    }
    return lines;
  }

  private String outcome(int back) {
    int at = last(back);
    if (isOver(back)) {
      return "took " + Amounts.time(ended.get(at) - began[at]);
    }
    return ended.get(at) == 0 ? "has not ended" : "enqueued on the device";
  }

  private boolean isOver(int back) {
    long call = count - back;
    long when = ended.get(at(call));
    return when != 0 && when != -call;
  }

  private int last(int back) {
    return at(count - back);
  }

  /** The slot of a call with this number, counted from 1. */
  private static int at(long call) {
    return (int) Math.floorMod(call - 1, (long) LENGTH);
  }
}
