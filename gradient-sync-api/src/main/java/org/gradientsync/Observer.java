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
  private double exposedSoFar;
  private long calls;
  private long bytes;
  private long observed;
  private double duration;
  private double exposed;

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

    /** From here on, the queue that computes has nothing to do before the reduction is done. */
    void wanted(WorkQueue queue) {
      wanted.record(queue);
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
      return complete && ended.isDone() && wanted.isDone();
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
    observation.complete = false;
    pending.add(observation);
    return observation;
  }

  /** Tells of those that are over. */
  synchronized void tell() {
    while (!pending.isEmpty() && pending.peek().isOver()) {
      Observation o = pending.remove();
      double behind = Math.max(0, o.wanted.millisecondsTo(o.ended));
      exposedSoFar = o.bucket <= 0 ? 0 : exposedSoFar;
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
              o.started.millisecondsTo(o.ended),
              Math.max(0, behind - exposedSoFar));
      exposedSoFar = Math.max(exposedSoFar, behind);
      free.push(o);
      observed++;
      duration += s.duration();
      exposed += s.exposed();
      for (Consumer<Synchronization> listener : listeners) {
        listener.accept(s);
      }
      if (FLIGHT_RECORDER) {
        SynchronizationEvent.write(s);
      }
    }
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
                duration / observed,
                duration == 0 ? 0 : 100 * exposed / duration);
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
