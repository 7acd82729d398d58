package org.gradientsync.core.observation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.Synchronization;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.mockito.MockMakers;

/** Tests the observation of a device that is behind the host, with a clock that the test sets. */
class ObserverTest {
  private final List<SimulatedEvent> made = new ArrayList<>();
  private final List<Synchronization> heard = new ArrayList<>();
  private final BackendDevice device =
      mock(BackendDevice.class, withSettings().mockMaker(MockMakers.SUBCLASS));
  private final DeviceBuffer buffer = new HostDevice().allocate(DataType.FLOAT32, 10);
  private final Stream compute = new SimulatedStream();
  private final Stream communication = new SimulatedStream();
  private final Observer observer = new Observer(device, "played", 0);
  private double now;
  private boolean capturing;

  /** A stream that can be captured. Not a mock: those make every stream of the JVM allocate. */
  private final class SimulatedStream implements Stream {
    @Override
    public void waitFor(Event event) {
      // the test decides when events are done
    }

    @Override
    public void await() {
      throw new AssertionError("the host is not to wait");
    }

    @Override
    public boolean isCapturing() {
      return capturing;
    }

    @Override
    public void close() {
      // nothing to release
    }
  }

  /** An event that is done when the test sets it. */
  private final class SimulatedEvent implements Event {
    private double time = Double.NaN;
    private boolean done = true;
    private boolean closed;

    @Override
    public void record(Stream stream) {
      assertTrue(!closed && !capturing);
      time = now;
      done = false;
    }

    @Override
    public boolean isDone() {
      assertTrue(!closed && !capturing);
      return done;
    }

    @Override
    public void await() {
      throw new AssertionError("the host is not to wait");
    }

    @Override
    public double millisecondsTo(Event later) {
      SimulatedEvent end = (SimulatedEvent) later;
      assertTrue(!closed && done && !end.closed && end.done, "not done yet");
      return end.time - time;
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  @BeforeEach
  void play() {
    when(device.stream()).thenReturn(compute);
    when(device.createEvent(anyBoolean()))
        .thenAnswer(
            call -> {
              made.add(new SimulatedEvent());
              return made.get(made.size() - 1);
            });
  }

  private Observer.Observation begin(int bucket) {
    return observer.begin(buffer, compute, ReduceOp.AVERAGE, bucket);
  }

  /** A bucket's average, with the times of its four events. */
  private void average(int bucket, double ready, double start, double end, double awaited) {
    Observer.Observation observation = begin(bucket);
    now = ready;
    observation.ready(compute);
    now = start;
    observation.starts(communication);
    now = end;
    observation.ends(communication);
    now = awaited;
    observation.awaited(compute);
    observation.complete();
  }

  private void allIsDone() {
    made.forEach(event -> event.done = true);
  }

  @Test
  void reductionsAreReportedInOrderWhenDone() {
    now = 1;
    SimulatedEvent origin = (SimulatedEvent) observer.listen(heard::add);
    average(0, 2, 3, 5, 4.5);
    average(1, 4, 5, 9, 5);
    observer.deliver(compute);
    assertEquals(List.of(), heard);
    made.subList(5, made.size())
        .forEach(event -> event.done = true); // the second reduction's events
    observer.deliver(compute);
    assertEquals(List.of(), heard);
    allIsDone();
    origin.done = false; // its stream is behind
    observer.deliver(compute);
    assertEquals(List.of(), heard);
    allIsDone();
    observer.deliver(compute);
    assertEquals(
        List.of(
            new Synchronization(
                1, 0, ReduceOp.AVERAGE, DataType.FLOAT32, 40, "played", 2, 1, 2, 0.5),
            new Synchronization(
                2, 1, ReduceOp.AVERAGE, DataType.FLOAT32, 40, "played", 4, 1, 4, 4)),
        heard);
  }

  @Test
  void exposedIsBetweenZeroAndTheDuration() {
    observer.listen(heard::add);
    average(0, 1, 2, 4, 7); // awaited after its end
    average(1, 1, 5, 6, 3); // awaited before its start
    allIsDone();
    observer.deliver(compute);
    assertEquals(List.of(0.0, 1.0), heard.stream().map(Synchronization::exposed).toList());
    assertTrue(
        observer
            .summary()
            .endsWith("; of 2 observed: 1.5 ms each on the device, 33.3% of it exposed"),
        observer.summary());
  }

  @Test
  void aReductionBeginsWhenTheOneBeforeHasEnded() {
    observer.listen(heard::add); // at 0
    average(0, 1, 2, 6, 9);
    average(1, 3, 4, 10, 8); // on the device already, behind the first one
    average(2, 4, 11, 12, 12);
    allIsDone();
    observer.deliver(compute);
    assertEquals(List.of(2.0, 6.0, 11.0), heard.stream().map(Synchronization::startedAt).toList());
    assertEquals(List.of(1.0, 3.0, 7.0), heard.stream().map(Synchronization::queued).toList());
    assertEquals(List.of(4.0, 4.0, 1.0), heard.stream().map(Synchronization::duration).toList());
    assertEquals(List.of(0.0, 2.0, 0.0), heard.stream().map(Synchronization::exposed).toList());
  }

  @Test
  void listenersGetOnlyLaterReductions() {
    List<Synchronization> late = new ArrayList<>();
    observer.listen(heard::add);
    average(0, 1, 2, 3, 3);
    now = 10;
    observer.listen(late::add);
    average(1, 11, 12, 13, 13);
    allIsDone();
    observer.deliver(compute);
    assertEquals(List.of(2.0, 12.0), heard.stream().map(Synchronization::startedAt).toList());
    assertEquals(List.of(2.0), late.stream().map(Synchronization::startedAt).toList());
  }

  @Test
  void nothingIsQueriedOrRecordedDuringCapture() {
    observer.listen(heard::add);
    average(0, 1, 2, 3, 3);
    allIsDone();
    capturing = true;
    assertNull(begin(-1));
    observer.deliver(compute);
    assertEquals(List.of(), heard);
    capturing = false;
    observer.deliver(compute);
    assertEquals(1, heard.size());
  }

  @Test
  void eventsAreReusedAndClosed() {
    observer.listen(heard::add);
    for (int i = 0; i < 5; i++) {
      average(0, 1, 2, 3, 3);
      allIsDone();
      observer.deliver(compute);
    }
    begin(1).forget();
    assertNotNull(begin(2)); // under way
    assertEquals(1 + 4 + 1, made.size()); // the end of the last reduction is kept
    begin(3).forget();
    assertEquals(1 + 2 * 4 + 1, made.size());
    observer.close();
    assertTrue(made.stream().allMatch(event -> event.closed));
    assertEquals(5, heard.size());
  }

  @Test
  void closingReportsCompleteReductions() {
    observer.listen(heard::add);
    average(0, 1, 2, 3, 3);
    allIsDone();
    average(1, 1, 2, 3, 3);
    observer.close();
    assertEquals(List.of(0), heard.stream().map(Synchronization::bucket).toList());
  }

  /** Another thread may hold a lock for which the listener waits, and count a call meanwhile. */
  @Test
  void aListenerHoldsUpNoOtherThread() {
    List<String> seen = new ArrayList<>();
    try (HostDevice host = new HostDevice();
        DeviceBuffer one = host.allocate(DataType.FLOAT32, 1);
        Observer own = new Observer(host, "none", 0)) {
      Stream stream = host.stream();
      own.listen(
          reduction -> {
            Thread other = new Thread(own::summary);
            other.start();
            try {
              other.join(10_000); // for ever, if it waits for this thread
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
            seen.add(reduction.sequence() + " " + other.isAlive());
          });
      for (int i = 0; i < 2; i++) {
        Observer.Observation observation = own.begin(one, stream, ReduceOp.SUM, -1);
        observation.ready(stream);
        observation.starts(stream);
        observation.ends(stream);
        observation.complete();
        own.deliver(stream);
      }
    }
    assertEquals(List.of("1 false", "2 false"), seen);
  }
}
