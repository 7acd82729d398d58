package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.Parameter;
import org.gradientsync.spi.BackendDevice;

/**
 * Measures an engine's calls with the device's clock, from {@link #start} on. All events are
 * created before, so that a timed step allocates nothing.
 */
final class TimedMlp implements MlpEngine {
  private final MlpEngine engine;
  private final BackendDevice device;
  private final Call[] calls;
  private int used;
  private int forwards;
  private boolean on;

  /** One call of the engine. */
  private static final class Call {
    private final Event started;
    private final Event ended;
    private TimelineEvent.Kind kind;
    private int layer;
    private int forward; // the number of this forward pass, or of the one before

    Call(BackendDevice device) {
      started = device.createEvent(true);
      ended = device.createEvent(true);
    }
  }

  /**
   * Creates the events without measuring yet.
   *
   * @param engine the engine; its owner closes it
   * @param mostCalls the largest number of calls to measure; later ones are not measured
   */
  TimedMlp(MlpEngine engine, BackendDevice device, int mostCalls) {
    this.engine = engine;
    this.device = device;
    calls = new Call[mostCalls];
    for (int i = 0; i < mostCalls; i++) {
      calls[i] = new Call(device);
    }
  }

  /** Measures calls from now on. */
  void start() {
    on = true;
    used = 0;
    forwards = 0;
  }

  /**
   * Returns the measured calls. The device must have finished its work.
   *
   * @param rank the device's rank
   * @param origin the event at time 0
   * @param firstStep the step of the first call
   * @param accumulate the number of forward passes in a step
   */
  List<TimelineEvent> events(int rank, Event origin, long firstStep, int accumulate) {
    List<TimelineEvent> events = new ArrayList<>();
    for (int i = 0; i < used; i++) {
      Call call = calls[i];
      events.add(
          new TimelineEvent(
              rank,
              call.kind,
              call.layer,
              firstStep + (call.forward - 1) / accumulate,
              origin.millisecondsTo(call.started),
              call.started.millisecondsTo(call.ended),
              0,
              0,
              0));
    }
    return events;
  }

  private void begin() {
    if (on && used < calls.length) {
      calls[used].started.record(device.stream());
    }
  }

  private void end(TimelineEvent.Kind kind, int layer) {
    if (on && used < calls.length) {
      Call call = calls[used++];
      call.ended.record(device.stream());
      call.kind = kind;
      call.layer = layer;
      call.forward = forwards;
    }
  }

  @Override
  public List<Parameter> parameters() {
    return engine.parameters();
  }

  @Override
  public List<DeviceBuffer> weights() {
    return engine.weights();
  }

  @Override
  public void useWeights(List<DeviceBuffer> newWeights) {
    engine.useWeights(newWeights);
  }

  @Override
  public void load(int batch, double[] inputs, double[] targets) {
    engine.load(batch, inputs, targets);
  }

  @Override
  public void forward(int batch) {
    forwards++;
    begin();
    engine.forward(batch);
    end(TimelineEvent.Kind.FORWARD, 0);
  }

  @Override
  public void backward(int layer, DeviceBuffer gradient, double scale, boolean accumulate) {
    begin();
    engine.backward(layer, gradient, scale, accumulate);
    end(TimelineEvent.Kind.BACKWARD, layer);
  }

  @Override
  public void update(int layer, DeviceBuffer gradient, double rate) {
    begin();
    engine.update(layer, gradient, rate);
    end(TimelineEvent.Kind.UPDATE, layer);
  }

  @Override
  public void adam(AdamPart part, double rate, double correction) {
    begin();
    engine.adam(part, rate, correction);
    end(part.shard() ? TimelineEvent.Kind.SHARD : TimelineEvent.Kind.UPDATE, part.number());
  }

  @Override
  public double loss() {
    return engine.loss();
  }

  /** Closes the events. */
  @Override
  public void close() {
    for (Call call : calls) {
      call.started.close();
      call.ended.close();
    }
  }
}
