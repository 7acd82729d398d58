package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class SparseRowsTest {
  private static void refused(
      long tableRows, int width, long[] indices, int elements, String expected) {
    String text =
        assertThrows(
                IllegalArgumentException.class,
                () -> new SparseRows(tableRows, width, indices, new float[elements]))
            .getMessage();
    assertTrue(text.contains(expected), text);
  }

  @Test
  void refusesWhatAreNoRowsOfATable() {
    refused(-1, 1, new long[0], 0, "tableRows=-1");
    refused(1, 0, new long[0], 0, "width=0");
    refused(4, 2, new long[] {1, 2}, 3, "elements=3");
    refused(4, 2, new long[] {1, 4}, 4, "indices[1]=4");
    refused(4, 2, new long[] {-1, 2}, 4, "indices[0]=-1");
    refused(1L << 40, 1 << 16, new long[1 << 16], 0, "elements=0"); // a product beyond an int
  }

  @Test
  void isShort() {
    SparseRows rows = new SparseRows(9, 2, new long[] {8, 8}, new float[4]);
    assertEquals("SparseRows[2 of 9, width=2]", rows.toString());
  }
}
