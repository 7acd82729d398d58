package org.gradientsync.core.observation;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import jdk.jfr.FlightRecorder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.Synchronization;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Measures the times of reductions for listeners and JDK Flight Recorder. A GPU's times are known
 * only after the calls have returned, so a later call, or closing, reports them.
 */
public final class Observer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Observer.class);
  private static final boolean FLIGHT_RECORDER =
      ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private final BackendDevice device;
  private final String reducer;
  private final int rank;
  private volatile Thread caller; // the thread that is calling a listener, or null
  private final List<Listener> listeners = new CopyOnWriteArrayList<>();
  private final ArrayDeque<Observation> free = new ArrayDeque<>();
  private final ArrayDeque<Observation> pending = new ArrayDeque<>();
  private final ArrayDeque<Report> reports = new ArrayDeque<>();
  private Event
      lastEnded; // the end of the last reported reduction, or null; an observation owns it
  private boolean warned;
  private long calls;
  private long bytes;
  private long observed;
  private double totalDuration;
  private double totalExposed;

  /**
   * Begins to count.
   *
   * @param rank this rank's number in the job, for events of JDK Flight Recorder
   */
  public Observer(BackendDevice device, String reducer, int rank) {
    this.rank = rank;
    this.device = device;
    this.reducer = reducer;
  }

  /**
   * A listener.
   *
   * @param origin the event from which its times count
   * @param after the number of calls before it was added, which are not reported to it
   */
  private record Listener(Consumer<Synchronization> consumer, Event origin, long after) {}

  /** What a listener is to be told. */
  private record Report(Listener listener, Synchronization synchronization) {}

  /** The times of one reduction. */
  public final class Observation {
    private final Resources events = new Resources();
    private final Event ready;
    private final Event started;
    private Event ended; // null if it has become lastEnded
    private final Event awaited;
    private long sequence;
    private int bucket;
    private ReduceOp op;
    private DataType type;
    private long size;
    private boolean overlapped;
    private boolean complete;

    private Observation() {
      try {
        ready = events.add(device.createEvent(true));
        started = events.add(device.createEvent(true));
        ended = events.add(device.createEvent(true));
        awaited = events.add(device.createEvent(true));
      } catch (RuntimeException | Error e) {
        events.closeAfter(e);
        throw e;
      }
    }

    /** Records on the compute stream that the data is ready. */
    public void ready(Stream stream) {
      ready.record(stream);
    }

    /** Records the start on the stream of the reduction, just before it. */
    public void starts(Stream stream) {
      started.record(stream);
    }

    /** Records the end on the stream of the reduction, just after it. */
    public void ends(Stream stream) {
      ended.record(stream);
    }

    /**
     * Records on the compute stream that it now waits for the reduction. Not called for reductions
     * that run on the compute stream itself.
     */
    public void awaited(Stream stream) {
      awaited.record(stream);
      overlapped = true;
    }

    /** Marks that all events have been recorded. */
    public void complete() {
      synchronized (Observer.this) {
        complete = true;
      }
    }

    /** Drops the observation of a reduction that has failed. */
    public void forget() {
      synchronized (Observer.this) {
        pending.remove(this);
        free.push(this);
      }
    }

    private boolean isOver() {
      return complete && ended.isDone() && (!overlapped || awaited.isDone());
    }
  }

  /** Adds a listener, to which later calls are reported. Returns the origin of its times. */
  public synchronized Event listen(Consumer<Synchronization> listener) {
    Event origin = device.createEvent(true);
    try {
      origin.record(device.stream());
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, origin);
      throw e;
    }
    listeners.add(new Listener(listener, origin, calls));
    return origin;
  }

  /**
   * Throws if a listener makes this call: reporting it to listeners would not end.
   *
   * @throws IllegalStateException if a listener makes this call
   */
  public void requireNoListener(int rank) {
    if (caller == Thread.currentThread()) {
      throw new IllegalStateException(
          "a listener called the sync that it observes: rank="
              + rank
              + "; store the measurement, and call the sync after the observed call has returned");
    }
  }

  /**
   * Counts a call that is about to be made, and begins to observe it if there is a listener or a
   * recording.
   *
   * @param stream the stream on which the data is computed
   * @return null if there is none, or if the call is captured into a graph and so has no time
   */
  public synchronized Observation begin(
      DeviceBuffer buffer, Stream stream, ReduceOp op, int bucket) {
    calls++;
    long size = ((AbstractDeviceBuffer) buffer).usedCount() * buffer.type().sizeInBytes();
    bytes += size;
    if (listeners.isEmpty() && !isRecorded()) {
      return null;
    }
    if (stream.isCapturing()) {
      return null;
    }
    Observation observation = free.isEmpty() ? new Observation() : reused();
    observation.sequence = calls;
    observation.bucket = bucket;
    observation.op = op;
    observation.type = buffer.type();
    observation.size = size;
    observation.overlapped = false;
    observation.complete = false;
    pending.add(observation);
    return observation;
  }

  private Observation reused() {
    Observation observation = free.peek();
    if (observation.ended == null) {
      observation.ended = observation.events.add(device.createEvent(true));
    }
    return free.pop();
  }

  /**
   * Reports the reductions that are complete. Does nothing while the stream is being captured,
   * because events must not be queried then.
   */
  public void deliver(Stream stream) {
    synchronized (this) {
      if (pending.isEmpty() || stream.isCapturing()) {
        return;
      }
    }
    try {
      collect();
    } finally {
      report();
    }
  }

  private synchronized void collect() {
    while (!pending.isEmpty() && pending.peek().isOver() && haveOriginsPassed()) {
      Observation o = pending.remove();
      try {
        collect(o);
      } finally { // even if reading the times fails
        Event earlier = lastEnded;
        lastEnded = o.ended;
        o.ended = earlier;
        free.push(o);
      }
    }
  }

  private void collect(Observation o) {
    observed++;
    Event started = startOf(o);
    double duration = Math.max(0, started.millisecondsTo(o.ended));
    double exposed = o.overlapped ? within(duration, o.awaited.millisecondsTo(o.ended)) : duration;
    double queued = Math.max(0, o.ready.millisecondsTo(started));
    totalDuration += duration;
    totalExposed += exposed;
    for (Listener listener : listeners) {
      if (o.sequence > listener.after) {
        double startedAt = listener.origin.millisecondsTo(started);
        reports.add(new Report(listener, synchronization(o, startedAt, queued, duration, exposed)));
      }
    }
    if (isRecorded()) {
      SynchronizationEvent.write(rank, synchronization(o, 0, queued, duration, exposed));
    }
  }

  /** Whether a recording wants events. Without one their class and the recorder stay unloaded. */
  private static boolean isRecorded() {
    return FLIGHT_RECORDER && FlightRecorder.isInitialized() && SynchronizationEvent.isRecorded();
  }

  /**
   * The start of a reduction, but not before the end of the last one: reductions do not overlap.
   */
  private Event startOf(Observation o) {
    return lastEnded != null && lastEnded.millisecondsTo(o.started) < 0 ? lastEnded : o.started;
  }

  /** Whether all origins are done: the device's own stream may be behind the others. */
  private boolean haveOriginsPassed() {
    for (Listener listener : listeners) {
      if (!listener.origin.isDone()) {
        return false;
      }
    }
    return true;
  }

  private static double within(double most, double value) {
    return Math.max(0, Math.min(most, value));
  }

  private Synchronization synchronization(
      Observation o, double startedAt, double queued, double duration, double exposed) {
    return new Synchronization(
        o.sequence, o.bucket, o.op, o.type, o.size, reducer, startedAt, queued, duration, exposed);
  }

  /**
   * Calls the listeners, in the order of the reductions. Does not hold this observer's lock then: a
   * listener may close a buffer, for which it waits for a call that counts here. While one thread
   * reports, others leave their reports to it.
   */
  private void report() {
    while (true) {
      Report next;
      synchronized (this) {
        next = caller == null ? reports.poll() : null;
        if (next == null) {
          return;
        }
        caller = Thread.currentThread();
      }
      try {
        next.listener.consumer.accept(next.synchronization);
      } catch (Exception | Error e) { // also those that other languages do not declare
        warn(next, e);
      } finally {
        caller = null;
      }
    }
  }

  /** Instead of rethrowing an exception, because the other ranks are in the same call. */
  private synchronized void warn(Report report, Throwable thrown) {
    if (!warned) {
      warned = true;
      log.warn(
          "a listener threw, and stays registered: {}; this is logged once for each sync",
          report.synchronization,
          thrown);
    }
  }

  /** Summarizes all calls so far in one line; empty if there were none. */
  public synchronized String summary() {
    if (calls == 0) {
      return "";
    }
    String text =
        calls
            + (calls == 1 ? " reduction, " : " reductions, ")
            + Amounts.bytes(bytes)
            + " in all, by "
            + reducer;
    return observed == 0
        ? text
        : text
            + String.format(
                Locale.ROOT,
                "; of %d observed: %s each on the device, %.1f%% of it exposed",
                observed,
                Amounts.time(Math.round(totalDuration / observed * 1e6)),
                totalDuration == 0 ? 0 : 100 * totalExposed / totalDuration);
  }

  /** Reports the reductions that are complete, and drops the others. */
  @Override
  public void close() {
    Resources.closeAll(this::collect, this::report, this::release);
  }

  private synchronized void release() {
    pending.forEach(observation -> free.push(observation));
    try {
      Resources.closeAll(
          () -> Resources.closeAll(free.stream().map(observation -> observation.events).toList()),
          () -> Resources.closeAll(listeners.stream().map(Listener::origin).toList()));
    } finally {
      pending.clear();
      free.clear();
      listeners.clear();
    }
  }
}
