package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** Averages a buffer whose elements no int can count. Takes 9 GB of memory. */
class LargeBufferTest {
  @Test
  void beyondTwoToTheThirtyFirstElements() {
    long count = (1L << 31) + 5;
    LocalRanks.run(
        2,
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.BFLOAT16, count)) {
            assertEquals(count * 2, buffer.sizeInBytes());
            long[] places = {0, (1L << 29) - 3, (1L << 30) - 3, (3L << 29) - 3, count - 6};
            short[] values = new short[6];
            for (long place : places) {
              for (int i = 0; i < 6; i++) {
                values[i] = BFloat16.fromFloat(2 * i + 4 * sync.rank());
              }
              buffer.slice(place, 6).copyFrom(values);
            }
            sync.average(buffer);
            for (long place : places) {
              buffer.slice(place, 6).copyTo(values);
              for (int i = 0; i < 6; i++) {
                assertEquals(2f * i + 2, BFloat16.toFloat(values[i]));
              }
            }
          }
        });
  }
}
