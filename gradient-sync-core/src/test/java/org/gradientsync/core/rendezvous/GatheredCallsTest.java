package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GatheredCallsTest {
  @ParameterizedTest
  @CsvSource({"2, 8192", "32, 8192", "33, 4096", "1000, 256", "2048, 128", "2049, 0"})
  void thePayloadOfAllRanksIsBounded(int ranks, int expected) {
    assertEquals(expected, GatheredCalls.payloadBytes(ranks));
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 64", "64, 64", "65, 128", "1024, 1024", "1025, 2048", "8192, 8192"})
  void fewSizesAreSent(int payload, int expected) {
    assertEquals(expected, GatheredCalls.sentBytes(payload));
  }
}
