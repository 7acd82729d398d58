package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests the arguments and the limits of the scale; AveragesContract tests its course. */
class LossScalerTest {
  private static final Parameter PARAMETER = new Parameter("w", DataType.FLOAT32, 3);

  @ParameterizedTest
  @CsvSource({"0, 1", "-1, 1", "NaN, 1", "Infinity, 1", "1, 0"})
  void refusesScalesAndStepsOutOfRange(double scale, int goodSteps) {
    String text =
        assertThrows(IllegalArgumentException.class, () -> new LossScaler(scale, goodSteps))
            .getMessage();
    assertTrue(text.contains(goodSteps < 1 ? "goodSteps=0" : "scale=" + scale), text);
  }

  @Test
  void continuesFromAStateThatWasSaved() {
    try (GradientSync sync = GradientSync.create();
        GradientBuckets good = GradientBuckets.builder(sync, List.of(PARAMETER)).build()) {
      LossScaler first = new LossScaler(8, 3);
      first.step(good);
      first.step(good);
      LossScaler second = new LossScaler(1, 3);
      second.restore(first.state());
      assertEquals(first.state(), second.state());
      assertTrue(second.step(good));
      assertEquals(16, second.scale());
      LossScaler stricter = new LossScaler(1, 1);
      stricter.restore(first.state());
      stricter.step(good);
      assertEquals(16, stricter.scale());
    }
    LossScaler scaler = new LossScaler();
    for (LossScaler.State wrong :
        new LossScaler.State[] {
          new LossScaler.State(0, 1),
          new LossScaler.State(Double.NaN, 1),
          new LossScaler.State(1, -1)
        }) {
      assertThrows(IllegalArgumentException.class, () -> scaler.restore(wrong));
    }
    assertEquals(new LossScaler.State(65_536, 0), scaler.state());
  }

  @Test
  void theScaleStaysWithinNormalFloats() {
    try (GradientSync sync = GradientSync.create();
        GradientBuckets good = GradientBuckets.builder(sync, List.of(PARAMETER)).build();
        GradientBuckets bad = GradientBuckets.builder(sync, List.of(PARAMETER)).build()) {
      bad.gradient(0).copyFrom(new float[] {0, Float.NaN, 0});
      LossScaler scaler = new LossScaler(0x1p-125, 1);
      for (int i = 0; i < 4; i++) {
        assertFalse(scaler.step(good, bad));
      }
      assertEquals(Float.MIN_NORMAL, scaler.scale());
      for (int i = 0; i < 300; i++) {
        assertTrue(scaler.step(good));
      }
      assertEquals(0x1p127, scaler.scale());
      assertEquals(65_536, new LossScaler().scale());
    }
  }
}
