package org.gradientsync.core.backend;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.selection.JointChoice;

/** Tests answers of other ranks with any bytes. */
class AnswersFuzzTest {
  @FuzzTest
  void anyBytesAreAnAnswer(FuzzedDataProvider data) {
    List<String[]> answers = new ArrayList<>();
    for (int rank = data.consumeInt(1, 4); rank > 0; rank--) {
      answers.add(Answers.parse(data.consumeBytes(300)));
    }
    String cause = JointChoice.rejection(data.consumeRemainingAsString(), answers);
    assertTrue(cause == null || cause.contains("(rank "), cause);
    for (String[] answer : answers) {
      assertFalse(answer.length == 0);
    }
  }
}
