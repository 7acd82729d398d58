package org.gradientsync.core.collectives.messages;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Chunks cover every element once, in order. */
class ShardsTest {
  @Test
  void coverEverything() {
    for (int ranks = 1; ranks <= 9; ranks++) {
      for (int chunk : new int[] {1, 3, 64}) {
        for (long count = 0; count < 200; count++) {
          Shards shards = new Shards(count, ranks, chunk);
          long next = 0;
          for (int rank = 0; rank < ranks; rank++) {
            for (int index = 0; index < shards.chunks(); index++) {
              long length = shards.length(rank, index);
              assertTrue(length >= 0 && length <= chunk);
              if (length > 0) {
                assertEquals(next, shards.first(rank, index));
                next += length;
              }
            }
          }
          assertEquals(count, next);
        }
      }
    }
  }
}
