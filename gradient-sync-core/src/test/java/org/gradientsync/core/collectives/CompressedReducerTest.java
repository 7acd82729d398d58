package org.gradientsync.core.collectives;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.RETURNS_DEFAULTS;
import static org.mockito.Mockito.calls;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.withSettings;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.core.collectives.messages.MessageReducer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.rendezvous.Calls;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.InOrder;
import org.mockito.MockMakers;
import org.mockito.stubbing.Answer;

/** The parts of {@link CompressedReducer} that users cannot observe. */
@Timeout(60)
class CompressedReducerTest {
  private static final int PIECE = 100; // elements, not a power of two
  private static final Timeouts TIMEOUTS = new Settings(Map.of("timeout", "20")).timeouts();

  /** Records the calls of the inner reducer. */
  private static final class Noted extends ForwardingReducer<Reducer> {
    private final List<DeviceBuffer> buffers = new ArrayList<>();

    Noted(Reducer real) {
      super(real);
    }

    @Override
    public String name() {
      return "noted";
    }

    @Override
    public void run(CollectiveCall call) {
      buffers.add(call.buffer());
      super.run(call);
    }
  }

  private interface Task {
    void run(ProcessGroup group, HostDevice device, Noted inner);
  }

  private static void run(int ranks, Task task) {
    LocalRanks.run(
        ranks,
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          HostDevice device = new HostDevice();
          try (ProcessGroup group = world.split(0, sync.rank(), TIMEOUTS)) {
            task.run(group, device, new Noted(new MessageReducer("inner", group, device)));
            sync.barrier();
          } finally {
            device.close();
          }
        });
  }

  private static CompressedReducer bfloat16(
      Reducer inner, ProcessGroup group, BackendDevice device) {
    return new CompressedReducer(inner, group, device, DataType.BFLOAT16, PIECE * 2);
  }

  /**
   * A mock in a class of its own. Inline mocks change the code of the superclasses for the rest of
   * the JVM's life: {@code Object.wait()} would allocate, and allocation tests would fail.
   */
  private static <T> T apart(Class<T> type, Answer<?> answer) {
    return mock(type, withSettings().mockMaker(MockMakers.SUBCLASS).defaultAnswer(answer));
  }

  private static <T> T apart(Class<T> type) {
    return apart(type, RETURNS_DEFAULTS);
  }

  private static float value(int rank, int index) {
    return (rank + 1) * 1.001f + index * 0.37f;
  }

  private static void reduceAndCheck(
      CompressedReducer reducer, DeviceBuffer buffer, ProcessGroup group) {
    int count = (int) buffer.count();
    float[] values = new float[count];
    float[] expected = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = value(group.rank(), i);
      for (int rank = 0; rank < group.size(); rank++) {
        expected[i] += BFloat16.toFloat(BFloat16.fromFloat(value(rank, i)));
      }
      expected[i] = BFloat16.toFloat(BFloat16.fromFloat(expected[i]));
    }
    buffer.copyFrom(values);
    reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
    buffer.copyTo(values);
    assertArrayEquals(expected, values);
  }

  @Test
  void countsAroundPieceBoundaries() {
    run(
        3,
        (group, device, inner) -> {
          try (CompressedReducer reducer = bfloat16(inner, group, device)) {
            for (int count : new int[] {1, 63, 64, 65, 99, 100, 101, 199, 200, 201, 1000, 1001}) {
              try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
                reduceAndCheck(reducer, buffer, group);
                reduceAndCheck(reducer, buffer, group);
              }
            }
            for (DeviceBuffer piece : inner.buffers) {
              assertEquals(DataType.BFLOAT16, piece.type());
              assertTrue(piece.count() <= PIECE, piece::toString);
            }
          }
        });
  }

  @Test
  void finishedCallsAreRecordedAsFinished() {
    run(
        2,
        (group, device, inner) -> {
          try (CompressedReducer reducer = bfloat16(inner, group, device)) {
            for (int count : new int[] {0, 10, 2 * PIECE + 1}) {
              try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, count)) {
                reduceAndCheck(reducer, buffer, group);
              }
              Calls log = group.parts().calls();
              assertFalse(log.isRunning());
              assertTrue(log.lastFinished().contains("[" + (count <= PIECE ? count : 1) + "]"));
              List<String> lines = log.lines();
              assertTrue(
                  lines.stream().noneMatch(line -> line.contains("has not ended")),
                  lines::toString);
            }
          }
        });
  }

  @Test
  void plansEndWithTheBufferOrALargerScratch() {
    run(
        2,
        (group, device, inner) -> {
          CompressedReducer reducer = bfloat16(inner, group, device);
          DeviceBuffer small = device.allocate(DataType.FLOAT32, 10);
          DeviceBuffer large = device.allocate(DataType.FLOAT32, 90);
          reduceAndCheck(reducer, small, group);
          reduceAndCheck(reducer, small, group);
          DeviceBuffer first = inner.buffers.get(0);
          assertEquals(List.of(first, first), inner.buffers);
          reduceAndCheck(reducer, large, group);
          assertTrue(first.isClosed());
          reduceAndCheck(reducer, small, group);
          DeviceBuffer again = inner.buffers.get(3);
          assertFalse(again.isClosed());
          reduceAndCheck(reducer, large, group); // the scratch grew once
          assertFalse(again.isClosed());
          small.close();
          assertTrue(again.isClosed());
          DeviceBuffer last = inner.buffers.get(4);
          assertFalse(last.isClosed());
          reducer.close();
          assertTrue(last.isClosed());
        });
  }

  @Test
  void callsOnTwoStreamsWaitForEachOther() {
    run(
        2,
        (group, device, inner) -> {
          Stream one = apart(Stream.class);
          Stream other = apart(Stream.class);
          Event event = apart(Event.class);
          DeviceBuffer a = device.allocate(DataType.FLOAT32, 10);
          DeviceBuffer b = device.allocate(DataType.FLOAT32, 10);
          BackendDevice streams = apart(BackendDevice.class, delegatesTo(device));
          doReturn(event).when(streams).createEvent(false);
          doReturn(one).when(streams).streamOf(a);
          doReturn(other).when(streams).streamOf(b);
          CompressedReducer reducer = bfloat16(inner, group, streams);
          reduceAndCheck(reducer, a, group);
          reduceAndCheck(reducer, a, group);
          reduceAndCheck(reducer, b, group);
          reduceAndCheck(reducer, a, group);
          InOrder order = inOrder(one, other, event, streams);
          order.verify(one, calls(1)).waitFor(event);
          order.verify(event, calls(2)).record(one);
          order.verify(other, calls(1)).waitFor(event);
          order.verify(streams, calls(2)).convert(any(), any());
          order.verify(event, calls(1)).record(other);
          order.verify(one, calls(1)).waitFor(event);
          order.verify(streams, calls(2)).convert(any(), any());
          order.verify(event, calls(1)).record(one);
          verify(streams).on(eq(one), any());
          verify(streams).on(eq(other), any());
          verifyNoMoreInteractions(one, other);
          reducer.close();
          order.verify(event, calls(1)).await();
          order.verify(event, calls(1)).close();
        });
  }

  @Test
  void aFailedConversionBreaksTheGroup() {
    run(
        2,
        (group, device, inner) -> {
          BackendDevice faulty = apart(BackendDevice.class, delegatesTo(device));
          doThrow(new IllegalStateException("no more")).when(faulty).convert(any(), any());
          try (CompressedReducer reducer = bfloat16(inner, group, faulty);
              DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 10)) {
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(e.getMessage().contains("in the middle"), e.getMessage());
            assertTrue(e.getMessage().contains("no more"), e.getMessage());
            assertTrue(group.isBroken());
          }
        });
  }

  @Test
  void otherCallsGoToTheInnerReducer() {
    run(
        1,
        (group, device, real) -> {
          Reducer inner = apart(Reducer.class);
          doReturn("inner").when(inner).name();
          DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 10);
          CompressedReducer reducer = bfloat16(inner, group, device);
          assertEquals("inner", reducer.name());
          assertTrue(reducer.compresses());
          assertTrue(reducer.blocksHost());
          reducer.run(
              CollectiveCall.allReduce(buffer, ReduceOp.SUM)); // one rank: nothing is rounded
          verify(inner).run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          reducer.run(CollectiveCall.broadcast(buffer, 0));
          verify(inner).run(CollectiveCall.broadcast(buffer, 0));
          reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          verify(inner).prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          reducer.close();
          verify(inner).close();
        });
  }
}
