package org.gradientsync.core.observation;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.gradientsync.Synchronization;

/**
 * {@link Synchronization} as an event of JDK Flight Recorder. Used only if the JDK has that module.
 */
@Name("org.gradientsync.Synchronization")
@Label("Gradient Synchronization")
@Description(
    "A reduction over the ranks. Times are the device's, so the event is written when they are known.")
@Category("Gradient Sync")
@StackTrace(false)
public final class SynchronizationEvent extends Event {
  private static final SynchronizationEvent PROBE = new SynchronizationEvent();

  @Label("Rank")
  @Description("In the job, also for calls of a part of its ranks")
  int rank;

  @Label("Sequence")
  long sequence;

  @Label("Bucket")
  @Description("-1 for a call of the sync")
  int bucket;

  @Label("Operation")
  String operation;

  @Label("Element Type")
  String elementType;

  @Label("Size")
  @DataAmount
  long bytes;

  @Label("Reducer")
  String reducer;

  @Label("Queue Time")
  @Description("From the data's being ready to the start")
  @Timespan
  long queued;

  @Label("Device Time")
  @Timespan
  long device;

  @Label("Exposed Time")
  @Description("What the stream that computes had to wait")
  @Timespan
  long exposed;

  /** Whether a recording has enabled these events. Costs nothing if none has. */
  static boolean isRecorded() {
    return PROBE.isEnabled();
  }

  static void write(int rank, Synchronization s) {
    SynchronizationEvent event = new SynchronizationEvent();
    event.rank = rank;
    event.sequence = s.sequence();
    event.bucket = s.bucket();
    event.operation = s.op().name();
    event.elementType = s.type().name();
    event.bytes = s.bytes();
    event.reducer = s.reducer();
    event.queued = nanos(s.queued());
    event.device = nanos(s.duration());
    event.exposed = nanos(s.exposed());
    event.commit();
  }

  private static long nanos(double milliseconds) {
    return Math.round(milliseconds * 1e6);
  }
}
