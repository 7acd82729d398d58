package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** Checks JSON that programs write for other programs. */
public final class Json {
  private Json() {}

  /** Requires a text to be one JSON value. Replaces valid parts from the inside out. */
  public static void assertJson(String text) {
    String rest =
        text.replaceAll("\"(?:[^\"\\\\\\p{Cntrl}]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-f]{4})*\"", "s")
            .replaceAll("-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?|true|false|null", "v")
            .replaceAll("\\s", "");
    String before = "";
    while (!rest.equals(before)) {
      before = rest;
      rest = rest.replaceAll("\\[(?:[vs](?:,[vs])*)?]", "v");
      rest = rest.replaceAll("\\{(?:s:[vs](?:,s:[vs])*)?}", "v");
    }
    assertEquals("v", rest, text);
  }
}
