package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.ReduceOp;
import org.gradientsync.test.contract.Numbers;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What ranks with GPUs on nodes with two ranks each see, where NCCL or MPI connects the GPUs of
 * different nodes.
 */
@TestInstance(Lifecycle.PER_CLASS)
class TwoLevelGpuContract {
  private GradientSync sync;

  @BeforeAll
  void create() {
    sync = GradientSync.create();
  }

  @AfterAll
  void close() {
    sync.close();
  }

  @Test
  void itIsChosen() {
    assertEquals("two-level-gpu", sync.reducer(), () -> "" + sync.alternatives());
  }

  /** The largest has several chunks, and a rest that cannot be divided. */
  @ParameterizedTest
  @EnumSource
  void bitsAreThoseOfTheSumInRankOrder(DataType type) {
    for (ReduceOp op : ReduceOp.values()) {
      for (int count : new int[] {0, 1, 4_099, 70_001, 600_001}) {
        if (op.isDefinedFor(type)) {
          compare(type, op, count);
        }
      }
    }
  }

  private void compare(DataType type, ReduceOp op, int count) {
    try (DeviceBuffer whole = sync.allocate(type, count + 3L);
        DeviceBuffer buffer = whole.slice(1, count)) {
      for (int call = 0; call < 3; call++) {
        buffer.copyFrom(Numbers.of(type, sync.rank(), call, count));
        sync.allReduce(buffer, op);
        ByteBuffer result = Numbers.memory(type, count);
        buffer.copyTo(result);
        assertEquals(
            -1,
            Numbers.reduced(type, op, sync.size(), call, count).mismatch(result),
            type + " " + op + " count=" + count);
      }
    }
  }

  /** More than one piece. */
  @Test
  void largeBuffersAreReducedInPieces() {
    int count = (40 << 20) + 1;
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, count)) {
      float[] values = new float[count];
      for (int i = 0; i < count; i++) {
        values[i] = i % 1000 + sync.rank();
      }
      buffer.copyFrom(values);
      sync.average(buffer);
      buffer.copyTo(values);
      for (int i = 0; i < count; i++) {
        assertEquals(i % 1000 + 1.5f, values[i]);
      }
    }
  }

  @Test
  void differentCallsAreNamedAndChangeNothing() {
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 300_000)) {
      float[] before = new float[300_000];
      Arrays.fill(before, sync.rank());
      buffer.copyFrom(before);
      DeviceBuffer part = sync.rank() == 3 ? buffer.slice(0, 200_000) : buffer;
      String message =
          assertThrows(MismatchedCallException.class, () -> sync.allReduce(part, ReduceOp.SUM))
              .getMessage();
      assertTrue(message.contains("FLOAT32[200000]"), message);
      float[] after = new float[300_000];
      buffer.copyTo(after);
      assertArrayEquals(before, after);
    }
  }

  @Test
  void otherCollectivesWork() {
    try (DeviceBuffer in = sync.allocate(DataType.INT32, 1_001);
        DeviceBuffer out = sync.allocate(DataType.INT32, 4_004)) {
      int[] values = new int[1_001];
      Arrays.fill(values, 7 + sync.rank());
      in.copyFrom(values);
      sync.allGather(in, out);
      int[] all = new int[4_004];
      out.copyTo(all);
      for (int i = 0; i < all.length; i++) {
        assertEquals(7 + i / 1_001, all[i]);
      }
    }
  }
}
