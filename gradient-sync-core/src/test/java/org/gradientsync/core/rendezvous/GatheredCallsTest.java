package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GatheredCallsTest {
  @ParameterizedTest
  @CsvSource({"2, 8192", "32, 8192", "33, 4096", "1000, 256", "2048, 128", "2049, 0"})
  void thePayloadOfAllRanksIsBounded(int ranks, int expected) {
    assertEquals(expected, GatheredCalls.payloadBytes(ranks));
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "1, 64",
    "64, 64",
    "65, 80",
    "128, 128",
    "1024, 1024",
    "1025, 1280",
    "8192, 8192",
    "28672, 28672"
  })
  void fewSizesAreSent(int payload, int expected) {
    assertEquals(expected, GatheredCalls.sentBytes(payload));
  }

  @Test
  void eachSizeHasANumber() {
    Map<Integer, Integer> sizes = new HashMap<>();
    for (int payload = 0; payload <= GatheredCalls.MAX_SUM; payload++) {
      int sent = GatheredCalls.sentBytes(payload);
      int number = GatheredCalls.sizeIndex(sent);
      assertTrue(sent >= payload && number < GatheredCalls.SIZES);
      assertEquals(sent, sizes.computeIfAbsent(number, any -> sent));
    }
  }
}
