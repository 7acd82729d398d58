package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class HostArithmeticTest {
  private static final int[] COUNTS = {1, 2, 31, 33, 64, 255, 256, 257, 511, 513, 1024, 1025, 2047};

  /** Whatever its place in a block, and also after a call with more elements. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT64"})
  void aNanIsTheCanonicalOne(DataType type) {
    try (HostDevice device = new HostDevice()) {
      for (int count : COUNTS) {
        for (int at = 0; at < count; at += at > 40 ? 37 : 1) {
          for (ReduceOp op : new ReduceOp[] {ReduceOp.SUM, ReduceOp.AVERAGE}) {
            reduce(device, type, count, at, op);
          }
        }
        reduce(device, type, count, count - 1, ReduceOp.AVERAGE);
      }
    }
  }

  private static void reduce(HostDevice device, DataType type, int count, int at, ReduceOp op) {
    boolean single = type == DataType.FLOAT32;
    ByteBuffer bytes =
        ByteBuffer.allocateDirect(count * type.sizeInBytes()).order(ByteOrder.nativeOrder());
    try (DeviceBuffer other = device.allocate(type, count);
        DeviceBuffer target = device.allocate(type, count)) {
      if (single) {
        bytes.putInt(at * Float.BYTES, 0xffc12345);
      } else {
        bytes.putLong(at * Double.BYTES, 0xfff8123456789abcL);
      }
      target.copyFrom(bytes);
      device.reduce(new DeviceBuffer[] {other, target}, target, op);
      target.copyTo(bytes);
      for (int i = 0; i < count; i++) {
        long expected = i != at ? 0 : single ? 0x7fc00000 : 0x7ff8000000000000L;
        long found = single ? bytes.getInt(i * Float.BYTES) : bytes.getLong(i * Double.BYTES);
        int where = i;
        assertEquals(expected, found, () -> op + " of " + count + ", NaN " + at + ", at " + where);
      }
    }
  }
}
