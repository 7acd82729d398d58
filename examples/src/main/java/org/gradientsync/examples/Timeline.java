package org.gradientsync.examples;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.Synchronization;
import org.gradientsync.spi.BackendDevice;

/**
 * Records the times of some steps on each rank with its device's clock, and merges them.
 *
 * <p>An average ends on all ranks at nearly the same time. So the timeline makes some very small
 * averages before the steps, and corrects each clock by the median difference of their ends.
 */
final class Timeline implements AutoCloseable {
  private static final int MARKS = 9;

  private final GradientSync sync;
  private final TimedMlp engine;
  private final int steps;
  private final int accumulate;
  private final DeviceBuffer mark;
  private final List<Synchronization> averages = new ArrayList<>();
  private Event origin;
  private long firstStep;

  /**
   * Creates the events.
   *
   * @param engine the engine to measure; its owner closes it
   * @param steps the number of steps, 1 or more
   * @param accumulate the number of forward passes in a step
   */
  Timeline(GradientSync sync, MlpEngine engine, int steps, int accumulate) {
    this.sync = sync;
    this.steps = steps;
    this.accumulate = accumulate;
    int layers = engine.parameters().size();
    int calls = steps * (accumulate * (1 + layers) + layers);
    this.engine = new TimedMlp(engine, (BackendDevice) sync.device(), calls);
    mark = sync.allocate(DataType.FLOAT32, 1);
  }

  /** Returns the engine to train with. */
  MlpEngine engine() {
    return engine;
  }

  int steps() {
    return steps;
  }

  /** Starts recording before a step. Collective. */
  void start(long step) {
    firstStep = step;
    origin = sync.observe(averages::add);
    for (int i = 0; i < MARKS; i++) {
      sync.average(mark);
    }
    engine.start();
  }

  /**
   * {@return on rank 0 all ranks' events by start time, the first one at 0; nothing elsewhere} Call
   * it after the steps, when the devices have finished and all averages have been reported.
   * Collective.
   */
  List<TimelineEvent> gather() {
    List<TimelineEvent> own = engine.events(sync.rank(), origin, firstStep, accumulate);
    addAverages(own);
    long[] most = {own.size()};
    sync.communicator().allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    int size = Math.addExact((MARKS + 1) * Double.BYTES, (int) most[0] * TimelineEvent.BYTES);
    ByteBuffer sent = ByteBuffer.allocate(size);
    averages.stream()
        .filter(s -> s.bucket() < 0)
        .limit(MARKS)
        .forEach(s -> sent.putDouble(s.startedAt() + s.duration()));
    sent.putLong(own.size());
    own.forEach(event -> event.put(sent));
    boolean root = sync.rank() == 0;
    ByteBuffer all = root ? ByteBuffer.allocate(Math.multiplyExact(size, sync.size())) : null;
    sync.communicator().gather(sent.clear(), all, 0);
    return root ? merge(all, size) : List.of();
  }

  private void addAverages(List<TimelineEvent> events) {
    long step = firstStep - 1;
    for (Synchronization s : averages) {
      if (s.bucket() == 0) {
        step++;
      }
      if (s.bucket() >= 0) {
        events.add(
            new TimelineEvent(
                sync.rank(),
                TimelineEvent.Kind.AVERAGE,
                s.bucket(),
                step,
                s.startedAt(),
                s.duration(),
                s.bytes(),
                s.queued(),
                s.exposed()));
      }
    }
  }

  /** Merges what all ranks have sent, by rank 0's clock. */
  static List<TimelineEvent> merge(ByteBuffer all, int size) {
    List<TimelineEvent> events = new ArrayList<>();
    double[] first = null;
    for (int begin = 0; begin < all.capacity(); begin += size) {
      all.position(begin);
      double[] ends = new double[MARKS];
      Arrays.setAll(ends, i -> all.getDouble());
      first = first == null ? ends : first;
      double ahead = ahead(first, ends);
      for (long left = all.getLong(); left > 0; left--) {
        events.add(TimelineEvent.get(all).earlierBy(ahead));
      }
    }
    double zero = events.stream().mapToDouble(TimelineEvent::start).min().orElse(0);
    return events.stream()
        .map(event -> event.earlierBy(zero))
        .sorted(Comparator.comparingDouble(TimelineEvent::start))
        .toList();
  }

  /** Returns how far a rank's clock is ahead of rank 0's. */
  static double ahead(double[] first, double[] own) {
    double[] differences = new double[own.length];
    Arrays.setAll(differences, i -> own[i] - first[i]);
    Arrays.sort(differences);
    return differences[differences.length / 2];
  }

  @Override
  public void close() {
    engine.close();
    mark.close();
  }
}
