package org.gradientsync.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests the check of every element. */
class PerfNumbersTest {
  static Stream<Arguments> typesAndOperations() {
    List<Arguments> all = new ArrayList<>();
    for (DataType type : DataType.values()) {
      for (ReduceOp op : ReduceOp.values()) {
        if (op.isDefinedFor(type)) {
          all.add(Arguments.of(type, op));
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("typesAndOperations")
  void whatTheLibraryReducesIsRight(DataType type, ReduceOp op) {
    long count = 70_001; // more than one piece
    for (int ranks = 1; ranks <= 3; ranks++) {
      int size = ranks;
      LocalRanks.run(
          ranks,
          sync -> {
            PerfNumbers numbers = new PerfNumbers(type, op, size, null);
            try (DeviceBuffer buffer = sync.allocate(type, count)) {
              numbers.fill(buffer, sync.rank());
              for (int i = 1; i <= 3; i++) {
                int times = i;
                sync.allReduce(buffer, op);
                long wrong = numbers.wrong(buffer, index -> numbers.reduced(index, times));
                assertEquals(0, wrong, "ranks=" + size + ", times=" + times);
              }
            }
          });
    }
  }

  @ParameterizedTest
  @MethodSource("typesAndOperations")
  void everyWrongBitIsFound(DataType type, ReduceOp op) {
    long count = 70_001;
    LocalRanks.run(
        2,
        sync -> {
          PerfNumbers numbers = new PerfNumbers(type, op, 2, null);
          try (DeviceBuffer buffer = sync.allocate(type, count)) {
            numbers.fill(buffer, sync.rank());
            sync.allReduce(buffer, op);
            int found = 0;
            for (long index : new long[] {0, 65_535, 65_536, count - 1}) {
              ByteBuffer element =
                  ByteBuffer.allocateDirect(type.sizeInBytes()).order(ByteOrder.nativeOrder());
              DeviceBuffer one = buffer.slice(index, 1);
              one.copyTo(element);
              element.put(0, (byte) (element.get(0) ^ 1));
              one.copyFrom(element);
              assertEquals(++found, numbers.wrong(buffer, i -> numbers.reduced(i, 1)));
            }
          }
        });
  }

  @Test
  void numbersDifferByRankAndIndex() {
    PerfNumbers numbers = new PerfNumbers(DataType.FLOAT64, ReduceOp.AVERAGE, 4, null);
    for (long index = 0; index < 1000; index++) {
      double value = Double.longBitsToDouble(numbers.bits(0, index));
      assertEquals(0, value, 2);
      assertNotEquals(numbers.bits(0, index), numbers.bits(1, index));
      assertNotEquals(numbers.bits(0, index), numbers.bits(0, index + 1));
    }
  }

  @Test
  void averagesAreRoundedStepByStep() {
    PerfNumbers numbers = new PerfNumbers(DataType.FLOAT32, ReduceOp.AVERAGE, 4, null);
    int otherwise = 0;
    for (long index = 0; index < 10_000; index++) {
      float[] own = new float[4];
      for (int rank = 0; rank < 4; rank++) {
        own[rank] = Float.intBitsToFloat((int) numbers.bits(rank, index));
      }
      float sum = own[0] + own[1];
      sum += own[2];
      sum += own[3];
      assertEquals(Float.floatToRawIntBits(sum / 4), (int) numbers.reduced(index, 1));
      otherwise += sum / 4 == (float) (((double) own[0] + own[1] + own[2] + own[3]) / 4) ? 0 : 1;
    }
    assertNotEquals(0, otherwise, "rounding once, at the end, would have given the same");
  }
}
