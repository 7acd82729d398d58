package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** {@link HostDevice#convert} against the definitions of the two formats. */
class HostConvertTest {
  private static final int ALL = 1 << 16;

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void widensAllValuesAndNarrowsThemBack(DataType half) {
    HostDevice device = new HostDevice();
    short[] bits = new short[ALL];
    for (int i = 0; i < ALL; i++) {
      bits[i] = (short) i;
    }
    DeviceBuffer narrow = device.allocate(half, ALL);
    DeviceBuffer wide = device.allocate(DataType.FLOAT32, ALL);
    narrow.copyFrom(bits);
    device.convert(narrow, wide);
    float[] values = new float[ALL];
    wide.copyTo(values);
    narrow.fillZero();
    device.convert(wide, narrow);
    short[] back = new short[ALL];
    narrow.copyTo(back);
    for (int i = 0; i < ALL; i++) {
      double expected = value(half, i);
      if (Double.isNaN(expected)) { // of any payload and sign
        assertEquals(0x7fc00000, Float.floatToRawIntBits(values[i]));
        assertEquals(half == DataType.FLOAT16 ? 0x7e00 : 0x7fc0, back[i]);
      } else {
        assertEquals(expected, (double) values[i]); // distinguishes -0 from +0
        assertEquals((short) i, back[i]);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void roundsToTheNearestAndTiesToTheEvenOne(DataType half) {
    HostDevice device = new HostDevice();
    int infinity = half == DataType.FLOAT16 ? 0x7c00 : 0x7f80;
    for (int lower = 0; lower < infinity; lower++) {
      assertTrue(value(half, lower) < value(half, lower + 1));
    }
    float[] values = new float[6 * infinity];
    short[] expected = new short[values.length];
    for (int lower = 0; lower < infinity; lower++) {
      // The next power of two rounds to infinity.
      double above =
          lower + 1 < infinity
              ? value(half, lower + 1)
              : half == DataType.FLOAT16 ? 0x1p16 : 0x1p128;
      float tie = (float) ((value(half, lower) + above) / 2);
      float[] around = {Math.nextDown(tie), tie, Math.nextUp(tie)};
      int[] nearest = {lower, lower + lower % 2, lower + 1};
      for (int k = 0; k < 3; k++) {
        values[6 * lower + k] = around[k];
        values[6 * lower + 3 + k] = -around[k];
        expected[6 * lower + k] = (short) nearest[k];
        expected[6 * lower + 3 + k] = (short) (nearest[k] | 0x8000);
      }
    }
    assertNarrowed(device, half, values, expected);
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void everyNaNBecomesTheCanonicalOne(DataType half) {
    HostDevice device = new HostDevice();
    SplittableRandom random = new SplittableRandom(3);
    float[] values = new float[10_000];
    short[] expected = new short[values.length];
    for (int i = 0; i < values.length; i++) {
      int payload = 1 << i % 23 | (i < 23 ? 0 : random.nextInt(1 << 23)); // each bit alone first
      int sign = i % 2 << 31;
      values[i] = Float.intBitsToFloat(sign | 0x7f800000 | payload);
      expected[i] = (short) (half == DataType.FLOAT16 ? 0x7e00 : 0x7fc0);
    }
    assertNarrowed(device, half, values, expected);
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16"})
  void crossesSegmentsAndKeepsToTheSlice(DataType half) {
    HostDevice device = new HostDevice(64); // 16 floats, 32 halves
    int count = 3001;
    DeviceBuffer wide = device.allocate(DataType.FLOAT32, count + 12);
    DeviceBuffer narrow = device.allocate(half, count + 12);
    float[] values = new float[count + 12];
    for (int i = 0; i < values.length; i++) {
      values[i] = i % 256 - 100;
    }
    wide.copyFrom(values);
    device.convert(wide.slice(5, count), narrow.slice(9, count));
    wide.fillZero();
    device.convert(narrow.slice(9, count), wide.slice(2, count));
    float[] result = new float[count + 12];
    wide.copyTo(result);
    for (int i = 0; i < result.length; i++) {
      assertEquals(i >= 2 && i < count + 2 ? values[i + 3] : 0f, result[i]);
    }
    short[] bits = new short[count + 12];
    narrow.copyTo(bits);
    for (int i : new int[] {0, 8, count + 9, count + 11}) {
      assertEquals(0, bits[i]);
    }
    device.convert(wide.slice(3, 0), narrow.slice(3, 0));
  }

  @ParameterizedTest
  @EnumSource
  void refusesTypesAndCountsThatDoNotFit(DataType type) {
    HostDevice device = new HostDevice();
    DeviceBuffer floats = device.allocate(DataType.FLOAT32, 10);
    DeviceBuffer doubles = device.allocate(DataType.FLOAT64, 10);
    DeviceBuffer buffer = device.allocate(type, 10);
    assertThrows(IllegalArgumentException.class, () -> device.convert(buffer, buffer));
    assertThrows(IllegalArgumentException.class, () -> device.convert(doubles, buffer));
    assertThrows(IllegalArgumentException.class, () -> device.convert(buffer, doubles));
    IllegalArgumentException e =
        assertThrows(
            IllegalArgumentException.class, () -> device.convert(floats.slice(0, 9), buffer));
    assertTrue(e.getMessage().contains("source=host FLOAT32[9]"), e.getMessage());
    if (type != DataType.FLOAT16 && type != DataType.BFLOAT16) {
      assertThrows(IllegalArgumentException.class, () -> device.convert(floats, buffer));
      assertThrows(IllegalArgumentException.class, () -> device.convert(buffer, floats));
    }
  }

  private static void assertNarrowed(
      HostDevice device, DataType half, float[] values, short[] expected) {
    DeviceBuffer wide = device.allocate(DataType.FLOAT32, values.length);
    DeviceBuffer narrow = device.allocate(half, values.length);
    wide.copyFrom(values);
    device.convert(wide, narrow);
    short[] bits = new short[values.length];
    narrow.copyTo(bits);
    for (int i = 0; i < bits.length; i++) {
      if (bits[i] != expected[i]) {
        assertEquals(
            Integer.toHexString(expected[i] & 0xffff),
            Integer.toHexString(bits[i] & 0xffff),
            Float.toHexString(values[i]));
      }
    }
  }

  /** The value of sign, exponent and fraction, computed in double. */
  private static double value(DataType half, int bits) {
    int fractionBits = half == DataType.FLOAT16 ? 10 : 7;
    int bias = half == DataType.FLOAT16 ? 15 : 127;
    int exponent = (bits & 0x7fff) >> fractionBits;
    double fraction = Math.scalb((double) (bits & (1 << fractionBits) - 1), -fractionBits);
    double sign = bits >> 15 == 0 ? 1 : -1;
    if (exponent == 2 * bias + 1) {
      return fraction == 0 ? sign * Double.POSITIVE_INFINITY : Double.NaN;
    }
    return sign
        * (exponent == 0
            ? Math.scalb(fraction, 1 - bias)
            : Math.scalb(1 + fraction, exponent - bias));
  }
}
