package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.GpuRunner;
import org.gradientsync.test.contract.GroupedCallsContract;
import org.gradientsync.test.contract.Numbers;
import org.gradientsync.test.contract.RankRunner;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The contract of calls in groups, on real GPUs, also of groups that are reduced as one. */
class PeerGroupedCallsOnGpu extends GroupedCallsContract {
  /** The largest is some 4 MB of FLOAT16; one fills batches of each type, one is empty. */
  private static final int[] COUNTS = {
    1, 2_100_003, 0, 15_360, 1_000_001, 7, 7_680, 7_681, 2_000_000, 33, 500_000
  };

  @Override
  protected RankRunner runner() {
    return new GpuRunner(PeerReducer.NAME);
  }

  /** Buffers, some of which begin at odd places of a larger one. */
  private static final class Parts implements AutoCloseable {
    private final DeviceBuffer whole;
    private final List<DeviceBuffer> parts = new ArrayList<>();
    private final GradientSync sync;

    Parts(GradientSync sync, DataType type, long extra) {
      this.sync = sync;
      whole = sync.allocate(type, 2_200_000);
      for (int i = 0; i < COUNTS.length; i++) {
        parts.add(sync.allocate(type, COUNTS[i] + extra).named("part " + i));
      }
      parts.add(whole.slice(3, 1_100_001 + extra));
      parts.add(whole.slice(1_200_000, 1_000_000));
    }

    void fill(long round) {
      for (int i = 0; i < parts.size(); i++) {
        DeviceBuffer part = parts.get(i);
        part.copyFrom(Numbers.of(part.type(), sync.rank(), round + i, (int) part.count()));
      }
    }

    void reduce(ReduceOp op) {
      sync.grouped(() -> parts.forEach(part -> sync.allReduce(part, op)));
    }

    void check(ReduceOp op, long round) {
      for (int i = 0; i < parts.size(); i++) {
        DeviceBuffer part = parts.get(i);
        DataType type = part.type();
        ByteBuffer actual = Numbers.memory(type, (int) part.count());
        part.copyTo(actual);
        ByteBuffer expected = Numbers.reduced(type, op, sync.size(), round + i, (int) part.count());
        assertEquals(-1, expected.mismatch(actual), "round=" + round + ", buffer=" + part);
      }
    }

    @Override
    public void close() {
      parts.forEach(DeviceBuffer::close);
      whole.close();
    }
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void largeGroupsGiveThePromisedBits(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              DataType[] types = {
                DataType.FLOAT32, DataType.BFLOAT16, DataType.FLOAT16, DataType.FLOAT64
              };
              for (DataType type : types) {
                try (Parts parts = new Parts(sync, type, 0)) {
                  for (int round = 0; round < 2; round++) {
                    parts.fill(round);
                    parts.reduce(ReduceOp.AVERAGE);
                    parts.check(ReduceOp.AVERAGE, round);
                    parts.fill(10 + round);
                    parts.reduce(ReduceOp.SUM);
                    parts.check(ReduceOp.SUM, 10 + round);
                  }
                }
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void aLargeGroupCanBeCaptured(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              try (Parts parts = new Parts(sync, DataType.FLOAT32, 0)) {
                CudaStream stream = ((CudaBuffer) parts.whole).stream();
                parts.reduce(ReduceOp.AVERAGE);
                stream.beginCapture();
                parts.reduce(ReduceOp.AVERAGE);
                try (CudaGraph graph = stream.endCapture()) {
                  for (int round = 0; round < 2; round++) {
                    parts.fill(round);
                    graph.launch(stream);
                    parts.check(ReduceOp.AVERAGE, round);
                  }
                }
              }
            });
  }

  @ParameterizedTest(allowZeroInvocations = true)
  @MethodSource("severalRanks")
  void largeGroupsOfOtherPartsAreRefused(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              boolean odd = sync.rank() == ranks - 1;
              try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, odd ? 3_000_000 : 2_999_999);
                  DeviceBuffer b = sync.allocate(DataType.FLOAT32, odd ? 2_999_999 : 3_000_000)) {
                a.copyFrom(Numbers.of(DataType.FLOAT32, sync.rank(), 0, (int) a.count()));
                String text =
                    assertThrows(
                            MismatchedCallException.class,
                            () ->
                                sync.grouped(
                                    () -> {
                                      sync.average(a);
                                      sync.average(b);
                                    }))
                        .getMessage();
                assertTrue(text.contains("FLOAT32[2999999]"), text);
                ByteBuffer actual = Numbers.memory(DataType.FLOAT32, (int) a.count());
                a.copyTo(actual);
                assertEquals(
                    -1,
                    Numbers.of(DataType.FLOAT32, sync.rank(), 0, (int) a.count()).mismatch(actual));
              }
            });
  }

  /** New buffers lie where others were, and the ranks close them at different times. */
  @ParameterizedTest
  @MethodSource("sizes")
  void largeGroupsComeAndGo(int ranks) {
    runner()
        .run(
            ranks,
            sync -> {
              for (int round = 0; round < 20; round++) {
                try (Parts parts = new Parts(sync, DataType.BFLOAT16, round % 3)) {
                  parts.fill(round);
                  parts.reduce(ReduceOp.AVERAGE);
                  if (round % 5 == 0) {
                    parts.check(ReduceOp.AVERAGE, round);
                  }
                }
              }
            });
  }
}
