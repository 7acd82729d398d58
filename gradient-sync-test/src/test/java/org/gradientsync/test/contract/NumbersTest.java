package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that elements which are kept are those that would be computed. */
class NumbersTest {
  private static final int RANKS = 3;

  @ParameterizedTest
  @EnumSource
  void elementsDependOnTheirIndexOnly(DataType type) {
    int period = Elements.PERIOD;
    int[][] ranges = {
      {5, 20},
      {0, 3},
      {40, 100},
      {7, 0},
      {0, 150},
      {period - 10, 10},
      {period - 3, 9},
      {7, 2 * period}
    };
    for (int[] range : ranges) {
      for (int call = 0; call < 2; call++) {
        int rank = 2;
        ByteBuffer own = Numbers.of(type, rank, range[0], range[1]);
        ByteBuffer sum = Numbers.reduced(type, ReduceOp.SUM, RANKS, range[0], range[1]);
        ByteBuffer least = Numbers.reduced(type, ReduceOp.MIN, RANKS, range[0], range[1]);
        for (int i = 0; i < range[1]; i += 1 + i / 100) {
          long index = range[0] + i;
          assertElement(Numbers.bits(type, rank, index), own, type, i);
          assertElement(Numbers.reduced(type, ReduceOp.SUM, RANKS, index), sum, type, i);
          assertElement(Numbers.reduced(type, ReduceOp.MIN, RANKS, index), least, type, i);
        }
        for (int i = 0; i < own.capacity(); i += 1 + i / 100) {
          own.put(i, (byte) 1); // the caller's, and nobody else's
        }
      }
    }
  }

  private static void assertElement(long expected, ByteBuffer actual, DataType type, int index) {
    ByteBuffer memory = Numbers.memory(type, 1);
    Numbers.put(memory, type, 0, expected);
    assertEquals(Numbers.get(memory, type, 0), Numbers.get(actual, type, index));
  }
}
