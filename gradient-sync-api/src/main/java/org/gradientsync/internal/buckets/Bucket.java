package org.gradientsync.internal.buckets;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.internal.observation.Observer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * The gradients that are averaged together: their memory, and what puts the two streams in order.
 */
public final class Bucket implements AutoCloseable {
  final int[] parameters;

  /** On the stream that computes. */
  final DeviceBuffer flat;

  /** The same memory on the stream that averages. */
  final DeviceBuffer averaged;

  /** Behind the last gradient. */
  final Event ready;

  /** Behind the average. */
  final Event done;

  /** Averages, where it is its turn. */
  final Runnable average;

  /** How many gradients are not ready. */
  int missing;

  /** What the communication thread has given for it. */
  long ticket;

  /** What is being found out about this step's average, or null. */
  Observer.Observation observation;

  private final Resources resources = new Resources();

  Bucket(BucketSync sync, BucketLayout.Bucket layout, Stream compute, Stream communication) {
    BackendDevice device = sync.backend();
    parameters = layout.parameters.stream().mapToInt(Integer::intValue).toArray();
    try {
      DeviceBuffer memory = device.allocate(layout.type, layout.count);
      resources.add(memory); // and with it the views
      flat = device.on(compute, memory);
      averaged = device.on(communication, memory);
      ready = resources.add(device.createEvent(false));
      done = resources.add(device.createEvent(false));
      ready.record(device.stream()); // allocating has filled it with zeros there
      compute.waitFor(ready);
      communication.waitFor(ready);
    } catch (RuntimeException | Error e) {
      resources.closeAfter(e);
      throw e;
    }
    average = () -> average(sync, communication);
  }

  private void average(BucketSync sync, Stream communication) {
    communication.waitFor(ready);
    if (observation != null) {
      observation.starts(communication);
    }
    if (averaged.count() > 0) { // the same on all ranks
      sync.averageInOrder(averaged);
    }
    if (observation != null) {
      observation.ends(communication);
    }
    done.record(communication);
  }

  /** Begins a step. */
  void begin() {
    missing = parameters.length;
  }

  @Override
  public void close() {
    resources.close();
  }
}
