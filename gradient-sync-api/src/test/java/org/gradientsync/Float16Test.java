package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Compares both 16-bit formats with their definitions. */
class Float16Test {
  @Test
  void everyHalfHasItsValue() {
    for (int bits = 0; bits < 1 << 16; bits++) {
      float value = Float16.toFloat((short) bits);
      int exponent = bits >> 10 & 31;
      int fraction = bits & 1023;
      double sign = bits >> 15 == 0 ? 1 : -1;
      if (exponent == 31) {
        assertEquals(fraction == 0 ? sign * Double.POSITIVE_INFINITY : Double.NaN, value);
      } else {
        double expected =
            exponent == 0
                ? sign * fraction * 0x1p-24
                : sign * (1 + fraction / 1024.0) * Math.pow(2, exponent - 15);
        assertEquals((float) expected, value);
        assertEquals((short) bits, Float16.fromFloat(value));
      }
    }
  }

  @Test
  void everyBrainFloatIsTheUpperHalfOfAFloat() {
    for (int bits = 0; bits < 1 << 16; bits++) {
      float value = BFloat16.toFloat((short) bits);
      assertEquals(bits << 16, Float.floatToRawIntBits(value));
      assertEquals(Float.isNaN(value) ? BFloat16.NAN : (short) bits, BFloat16.fromFloat(value));
    }
  }

  @Test
  void roundsToNearestEven() {
    SplittableRandom random = new SplittableRandom(5);
    for (int i = 0; i < 2_000_000; i++) {
      float value = Float.intBitsToFloat(random.nextInt());
      if (i % 3 == 0) { // ties: halfway between two neighbours
        int bits = random.nextInt(0x7bff);
        value = (Float16.toFloat((short) bits) + Float16.toFloat((short) (bits + 1))) / 2;
      }
      if (Float.isNaN(value)) {
        assertEquals(Float16.NAN, Float16.fromFloat(value));
        assertEquals(BFloat16.NAN, BFloat16.fromFloat(value));
        continue;
      }
      assertNearest(value, Float16.fromFloat(value), 0x7c00, true);
      assertNearest(value, BFloat16.fromFloat(value), 0x7f80, false);
    }
  }

  /** Checks that no neighbour is nearer, and that a tie was rounded to the even neighbour. */
  private static void assertNearest(float value, short rounded, int infinity, boolean half) {
    int magnitude = rounded & 0x7fff;
    double distance = distance(value, magnitude, infinity, half);
    for (int neighbour : new int[] {magnitude - 1, magnitude + 1}) {
      if (neighbour < 0 || neighbour > infinity) {
        continue;
      }
      double other = distance(value, neighbour, infinity, half);
      assertTrue(
          distance < other || distance == other && magnitude % 2 == 0,
          () -> value + " became " + Integer.toHexString(rounded & 0xffff));
    }
    assertEquals(Float.floatToRawIntBits(value) < 0, rounded < 0);
  }

  private static double distance(float value, int magnitude, int infinity, boolean half) {
    // Infinity takes the place of the next number.
    double candidate;
    if (magnitude == infinity) {
      candidate = half ? 65536 : 0x1p128;
    } else {
      candidate = half ? Float16.toFloat((short) magnitude) : BFloat16.toFloat((short) magnitude);
    }
    double magnitudeOfValue = Math.abs((double) value);
    if (Double.isInfinite(magnitudeOfValue)) {
      return magnitude == infinity ? 0 : 1;
    }
    return Math.abs(magnitudeOfValue - Math.min(candidate, half ? 65536 : 0x1p128));
  }
}
