package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The last calls of a group, for the texts of errors and for reports. The thread that holds the
 * group's lock writes; whoever reads without it may see a call that is half written.
 */
public final class FlightRecorder {
  private static final int LENGTH = 32;

  private final ByteBuffer[] calls = new ByteBuffer[LENGTH];
  private final long[] began = new long[LENGTH];

  /**
   * When, in nanoseconds; 0 if a call has not ended, and the negative of its number if it has been
   * given to a device: so whoever finds that done cannot take a later call for it.
   */
  private final AtomicLongArray ended = new AtomicLongArray(LENGTH);

  private volatile long count;

  public FlightRecorder() {
    for (int i = 0; i < LENGTH; i++) {
      calls[i] = ByteBuffer.allocate(Call.BYTES).order(ByteOrder.nativeOrder());
    }
  }

  /** Begins a call, and returns where it is to be written. Allocates nothing. */
  public ByteBuffer next() {
    int at = at(count + 1);
    ended.lazySet(at, 0);
    began[at] = System.nanoTime();
    count++;
    return calls[at];
  }

  /** The last call has ended on this rank, and with it those that it is a part of. */
  public void finished() {
    long now = System.nanoTime();
    for (int back = 0; back < Math.min(count, LENGTH) && ended.get(last(back)) == 0; back++) {
      ended.lazySet(last(back), now);
    }
  }

  /** The last call has been given to a device, and ends there. */
  void enqueued() {
    ended.lazySet(last(0), -count);
  }

  /** The number of the last call, if it was given to a device that may not have done it, or 0. */
  long unsettled() {
    long last = count;
    return last > 0 && ended.get(at(last)) == -last ? last : 0;
  }

  /** The device has done all that was enqueued up to a call, which has this number. */
  void settled(long call) {
    long now = System.nanoTime();
    long done = call;
    while (done > 0 && ended.compareAndSet(at(done), -done, now)) {
      done--;
    }
  }

  /** Forgets all calls. */
  void clear() {
    count = 0;
  }

  /** Whether a call has begun and not ended. */
  public boolean isRunning() {
    return count > 0 && ended.get(last(0)) == 0;
  }

  /** The last call; there has been one. */
  public ByteBuffer currentBytes() {
    return calls[last(0)];
  }

  /** The last call, as a user reads it, or "none". */
  public String current() {
    return count > 0 ? Call.describe(calls[last(0)]) : "none";
  }

  /** The last call that has ended here, as a user reads it, or "none". */
  public String lastFinished() {
    for (int back = 0; back < Math.min(count, LENGTH); back++) {
      if (isOver(back)) {
        return Call.describe(calls[last(back)]);
      }
    }
    return "none";
  }

  /** Whether there has been no call. */
  public boolean isEmpty() {
    return count == 0;
  }

  /** How long ago the last call ended, or began if it has not; in nanoseconds. */
  public long sinceLast() {
    int at = last(0);
    return System.nanoTime() - (isOver(0) ? ended.get(at) : began[at]);
  }

  /** Whether no call has begun or ended for so long, or ever. */
  public boolean isQuietFor(long nanos) {
    return count == 0 || sinceLast() > nanos;
  }

  /** All calls that are remembered, oldest first. */
  public List<String> lines() {
    long now = System.nanoTime();
    List<String> lines = new ArrayList<>();
    for (int back = (int) Math.min(count, LENGTH) - 1; back >= 0; back--) {
      int at = last(back);
      lines.add(
          String.format(
              Locale.ROOT,
              "%s, began %.3f ms ago, %s",
              Call.describe(calls[at]),
              (now - began[at]) / 1e6,
              outcome(back)));
    }
    return lines;
  }

  private String outcome(int back) {
    int at = last(back);
    if (isOver(back)) {
      return String.format(Locale.ROOT, "took %.3f ms", (ended.get(at) - began[at]) / 1e6);
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

  /** Where a call is that has this number, from 1; or the last place, if there has been none. */
  private static int at(long call) {
    return (int) Math.floorMod(call - 1, (long) LENGTH);
  }
}
