package org.gradientsync.core.selection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.UnavailableException;

/** Tests answers of other ranks with any bytes and any lengths. */
class AnswersFuzzTest {
  @FuzzTest
  void anyLengthsMakeLittleRoomOrNone(FuzzedDataProvider data) {
    long[] lengths = data.consumeLongs(16);
    try {
      int longest = Answers.longest(lengths);
      assertTrue(longest >= 0 && longest <= Answers.MAX_BYTES, "longest=" + longest);
    } catch (UnavailableException e) {
      assertTrue(Arrays.stream(lengths).anyMatch(l -> l < 0 || l > Answers.MAX_BYTES));
    }
  }

  @FuzzTest
  void anyBytesAreAnAnswer(FuzzedDataProvider data) {
    long[] lengths = new long[data.consumeInt(1, 4)];
    for (int rank = 0; rank < lengths.length; rank++) {
      lengths[rank] = data.consumeInt(0, 300);
    }
    byte[] all = data.consumeBytes(lengths.length * Answers.longest(lengths));
    List<String[]> answers =
        Answers.parse(Arrays.copyOf(all, lengths.length * Answers.longest(lengths)), lengths);
    assertEquals(lengths.length, answers.size());
    String cause = Selection.rejection(data.consumeRemainingAsString(), answers);
    assertTrue(cause == null || cause.contains("(rank "), cause);
    for (String[] answer : answers) {
      assertFalse(answer.length == 0);
    }
  }
}
