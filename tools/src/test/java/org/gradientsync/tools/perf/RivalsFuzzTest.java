package org.gradientsync.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.gradientsync.tools.program.JsonReader;
import org.junit.jupiter.api.Test;

/** Reads arbitrary text as what rivals took. */
class RivalsFuzzTest {
  @FuzzTest
  void anyTextIsReadOrRefused(FuzzedDataProvider data) {
    String text = data.consumeRemainingAsString();
    try {
      Rivals.parse(text).forEach(rival -> assertNotNull(rival.reducer()));
    } catch (IOException e) {
      assertNotNull(e.getMessage());
    }
  }

  @Test
  void valuesAreThoseOfJson() throws IOException {
    assertEquals(
        Map.of("a\n\"\u00e9", Arrays.asList(1.5, -20.0, true, false, null, List.of(), Map.of())),
        JsonReader.read(" {\"a\\n\\\"\\u00E9\" : [1.5,\t-2e1, true, false, null, [], {}]}\n"));
    for (String text :
        List.of(
            "",
            " ",
            "1 2",
            "01",
            "+1",
            "1.",
            "[1,]",
            "[1",
            "{\"a\"}",
            "{a: 1}",
            "\"a",
            "nul",
            "\0",
            "1\0",
            "\"\\u12g4\"",
            "\"\\x\"",
            "\"\n\"",
            "[".repeat(100_000))) {
      assertThrows(IOException.class, () -> JsonReader.read(text), text);
    }
  }
}
