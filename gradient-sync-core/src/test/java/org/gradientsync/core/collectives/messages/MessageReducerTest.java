package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MessageReducerTest {
  @ParameterizedTest
  @CsvSource({
    "262144, 2, 262144",
    "262144, 32, 262144",
    "262144, 33, 131072",
    "262144, 1000, 8192",
    "262144, 100000, 4096",
    "4194304, 8, 4194304",
    "64, 2, 64",
    "64, 1000, 64"
  })
  void chunksAreSmallerWithManyRanks(int chunkBytes, int ranks, int expected) {
    assertEquals(expected, MessageReducer.maxChunkBytes(chunkBytes, ranks));
  }
}
