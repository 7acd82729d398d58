package org.gradientsync;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Moment;
import org.gradientsync.spi.WorkQueue;

/**
 * Takes the times of reductions where somebody wants them: a listener, or Flight Recorder. A GPU's
 * times are known later than the calls return, so they are told at a later call, or at the end.
 */
final class Observer implements AutoCloseable {
  private static final boolean FLIGHT_RECORDER =
      ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  private final BackendDevice device;
  private final String reducer;
  private final List<Consumer<Synchronization>> listeners = new CopyOnWriteArrayList<>();
  private final ArrayDeque<Observation> free = new ArrayDeque<>();
  private final ArrayDeque<Observation> pending = new ArrayDeque<>();
  private Moment origin;
  private double exposedBefore; // by the step's buckets so far
  private long calls;
  private long bytes;
  private long observed;
  private double totalDuration;
  private double totalExposed;

  Observer(BackendDevice device, String reducer) {
    this.device = device;
    this.reducer = reducer;
  }

  /** One reduction under way. */
  final class Observation {
    private final Moment ready = device.createMoment(true);
    private final Moment started = device.createMoment(true);
    private final Moment ended = device.createMoment(true);
    private final Moment wanted = device.createMoment(true);
    private long sequence;
    private int bucket;
    private ReduceOp op;
    private DataType type;
    private long size;
    private boolean beside;
    private boolean complete;

    /** The data is there, on the queue that computes. */
    void ready(WorkQueue queue) {
      ready.record(queue);
    }

    /** The next on this queue is the reduction. */
    void starts(WorkQueue queue) {
      started.record(queue);
    }

    /** The last on this queue was the reduction. */
    void ends(WorkQueue queue) {
      ended.record(queue);
    }

    /**
     * From here on, the queue that computes has nothing to do before the reduction is done. Not
     * called for reductions that are in that queue themselves.
     */
    void wanted(WorkQueue queue) {
      wanted.record(queue);
      beside = true;
    }

    /** All moments have been recorded. */
    void complete() {
      synchronized (Observer.this) {
        complete = true;
      }
    }

    /** It ended in an exception. */
    void forget() {
      synchronized (Observer.this) {
        pending.remove(this);
        free.push(this);
      }
    }

    private boolean isOver() {
      return complete && ended.isDone() && (!beside || wanted.isDone());
    }

    private void close() {
      ready.close();
      started.close();
      ended.close();
      wanted.close();
    }
  }

  /** Tells a listener from now on. */
  synchronized Moment listen(Consumer<Synchronization> listener) {
    listeners.add(listener);
    return origin();
  }

  private Moment origin() {
    if (origin == null) {
      origin = device.createMoment(true);
      origin.record(device.queue());
    }
    return origin;
  }

  /**
   * Counts a call that is about to be made, and begins to observe it if somebody wants that.
   *
   * @return null if nobody does
   */
  synchronized Observation begin(DeviceBuffer buffer, ReduceOp op, int bucket) {
    calls++;
    bytes += buffer.sizeInBytes();
    if (listeners.isEmpty() && !(FLIGHT_RECORDER && SynchronizationEvent.isWanted())) {
      return null;
    }
    origin();
    Observation observation = free.isEmpty() ? new Observation() : free.pop();
    observation.sequence = calls;
    observation.bucket = bucket;
    observation.op = op;
    observation.type = buffer.type();
    observation.size = buffer.sizeInBytes();
    observation.beside = false;
    observation.complete = false;
    pending.add(observation);
    return observation;
  }

  /** Tells of those that are over. */
  synchronized void tell() {
    while (!pending.isEmpty() && pending.peek().isOver()) {
      Observation o = pending.remove();
      double duration = o.started.millisecondsTo(o.ended);
      Synchronization s =
          new Synchronization(
              o.sequence,
              o.bucket,
              o.op,
              o.type,
              o.size,
              reducer,
              origin.millisecondsTo(o.started),
              Math.max(0, o.ready.millisecondsTo(o.started)),
              duration,
              o.beside ? exposed(o) : duration);
      free.push(o);
      observed++;
      totalDuration += s.duration();
      totalExposed += s.exposed();
      for (Consumer<Synchronization> listener : listeners) {
        listener.accept(s);
      }
      if (FLIGHT_RECORDER) {
        SynchronizationEvent.write(s);
      }
    }
  }

  /** What a step's bucket makes the queue that computes wait beyond the buckets before it. */
  private double exposed(Observation o) {
    double behind = Math.max(0, o.wanted.millisecondsTo(o.ended));
    double before = o.bucket == 0 ? 0 : exposedBefore;
    exposedBefore = Math.max(before, behind);
    return Math.max(0, behind - before);
  }

  /** What was done so far, in a line; empty if nothing was. */
  synchronized String summary() {
    if (calls == 0) {
      return "";
    }
    String text =
        String.format(Locale.ROOT, "%d reductions of %.3f GB by %s", calls, bytes / 1e9, reducer);
    return observed == 0
        ? text
        : text
            + String.format(
                Locale.ROOT,
                "; of %d observed: %.3f ms each on the device, %.1f%% of it exposed",
                observed,
                totalDuration / observed,
                totalDuration == 0 ? 0 : 100 * totalExposed / totalDuration);
  }

  /** Tells of those that are over; the others are forgotten. */
  @Override
  public synchronized void close() {
    tell();
    pending.forEach(Observation::close);
    free.forEach(Observation::close);
    if (origin != null) {
      origin.close();
    }
    pending.clear();
    free.clear();
  }
}
