package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.time.Duration;
import java.util.Map;
import org.gradientsync.DataType;

/** Settings with any text as their value: what makes sense, or an exception that names them. */
class SettingsFuzzTest {
  @FuzzTest
  void timeout(FuzzedDataProvider data) {
    String text = data.consumeRemainingAsString();
    try {
      Duration timeout = new Settings(Map.of("timeout", text)).timeouts().timeout();
      assertFalse(timeout.isZero() || timeout.isNegative(), text);
    } catch (IllegalArgumentException e) {
      assertTrue(e.getMessage().contains("gradientsync.timeout=" + text), e::toString);
    }
  }

  @FuzzTest
  void wire(FuzzedDataProvider data) {
    String text = data.consumeRemainingAsString();
    try {
      DataType wire = new Settings(Map.of("wire", text)).wire().orElse(DataType.FLOAT16);
      assertTrue(wire == DataType.FLOAT16 || wire == DataType.BFLOAT16, text);
    } catch (IllegalArgumentException e) {
      assertTrue(e.getMessage().contains("gradientsync.wire=" + text), e::toString);
    }
  }
}
