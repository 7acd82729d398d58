package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.Test;

/**
 * Tests ranks whose buffers are in different kinds of memory. {@link ContractsIT} runs it in each
 * rank.
 */
class MixedMemory {
  @Test
  void wrappedMemoryOnOneRankIsReducedByAll() {
    int count = 50_001;
    DataType type = DataType.FLOAT32;
    try (GradientSync sync = GradientSync.builder().reducer("shared").create()) {
      ByteBuffer memory = ByteBuffer.allocateDirect(count * 4).order(ByteOrder.nativeOrder());
      try (DeviceBuffer shared = sync.allocate(type, count);
          DeviceBuffer wrapped = sync.wrap(type, memory)) {
        for (int round = 0; round < 4; round++) {
          // Alternately all shared, and private on one rank.
          DeviceBuffer buffer = round % 2 == 1 && sync.rank() == 0 ? wrapped : shared;
          buffer.copyFrom(Numbers.of(type, sync.rank(), round, count));
          sync.average(buffer);
          ByteBuffer result = Numbers.memory(type, count);
          buffer.copyTo(result);
          assertEquals(
              -1,
              Numbers.reduced(type, ReduceOp.AVERAGE, sync.size(), round, count).mismatch(result));
        }
      }
    }
  }

  @Test
  void slicesThatLieElsewhereOnEachRank() {
    int count = 9_999;
    DataType type = DataType.BFLOAT16;
    try (GradientSync sync = GradientSync.builder().reducer("shared").create();
        DeviceBuffer whole = sync.allocate(type, 20_000)) {
      for (int round = 0; round < 5; round++) {
        DeviceBuffer part = whole.slice(7 * sync.rank() + round, count);
        part.copyFrom(Numbers.of(type, sync.rank(), 0, count));
        sync.allReduce(part, ReduceOp.SUM);
        ByteBuffer result = Numbers.memory(type, count);
        part.copyTo(result);
        assertEquals(
            -1, Numbers.reduced(type, ReduceOp.SUM, sync.size(), 0, count).mismatch(result));
      }
    }
  }
}
