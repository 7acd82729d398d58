package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;

/** Compares with averages computed by hand. */
class GradientsTest {
  @Test
  void float32IsRoundedAtEveryStep() {
    Gradients gradients = new Gradients(DataType.FLOAT32, 4);
    int otherwise = 0;
    for (long index = 0; index < 10_000; index++) {
      float g0 = (float) (index / 1000.0);
      float g1 = (float) (1 + index / 1000.0);
      float g2 = (float) (2 + index / 1000.0);
      float g3 = (float) (3 + index / 1000.0);
      float sum = g0 + g1;
      sum += g2;
      sum += g3;
      assertEquals(Float.floatToRawIntBits(sum / 4), (int) gradients.average(index));
      otherwise += sum / 4 == (float) (((double) g0 + g1 + g2 + g3) / 4) ? 0 : 1;
    }
    assertTrue(otherwise > 0, "rounding once, at the end, would have given the same");
  }

  @Test
  void float64IsNotRoundedToFloat() {
    Gradients gradients = new Gradients(DataType.FLOAT64, 2);
    double expected = (333 / 1000.0 + (1 + 333 / 1000.0)) / 2;
    assertEquals(Double.doubleToRawLongBits(expected), gradients.average(333));
    assertEquals(expected, gradients.expected(333));
    assertTrue((float) expected != expected);
  }

  @Test
  void float16IsSummedInFloat32() {
    // In half precision 2048, 2049, 2050, 2051 are 2048, 2048, 2050, 2052. Their average 2049.5
    // rounds to 2050; sums rounded to half precision would give 2048.
    Gradients gradients = new Gradients(DataType.FLOAT16, 4);
    assertEquals(2050, gradients.expected(2_048_000));
    assertEquals(Float16.fromFloat(2050), (short) gradients.average(2_048_000));
  }

  @Test
  void bfloat16IsSummedInFloat32() {
    // In bfloat16 256, 257, 258, 259 are 256, 256, 258, 260, with an average of 257.5.
    Gradients gradients = new Gradients(DataType.BFLOAT16, 4);
    assertEquals(258, gradients.expected(256_000));
    assertEquals(BFloat16.fromFloat(258), (short) gradients.average(256_000));
  }

  @Test
  void checkFindsEveryWrongElement() {
    long size = 70_001; // more than one chunk
    Gradients gradients = new Gradients(DataType.FLOAT32, 1);
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, size)) {
      gradients.compute(buffer, 0);
      assertTrue(gradients.check(buffer).passed());

      float almost = Math.nextUp((float) (size - 1) / 1000);
      for (long wrong : new long[] {0, 65_535, 65_536, size - 1}) {
        gradients.compute(buffer, 0);
        buffer.slice(wrong, 1).copyFrom(new float[] {almost});
        Gradients.Check check = gradients.check(buffer);
        assertFalse(check.passed());
        assertEquals(1, check.wrong());
        assertEquals(wrong, check.firstWrong());
        assertEquals(almost, check.averaged());
      }
      gradients.compute(buffer, 1);
      assertEquals(size, gradients.check(buffer).wrong());
    }
  }

  @Test
  void negativeZeroIsNotZero() {
    Gradients gradients = new Gradients(DataType.FLOAT64, 1);
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT64, 1)) {
      assertTrue(gradients.check(buffer).passed());
      buffer.copyFrom(new double[] {-0.0});
      assertFalse(gradients.check(buffer).passed());
    }
  }
}
