package org.gradientsync.tools.program;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads JSON: objects as {@link Map}, arrays as {@link List}, numbers as {@link Double}, and
 * strings, booleans and null as what they are.
 */
public final class JsonReader {
  private static final int MOST_DEPTH = 100;
  private static final Pattern NUMBER =
      Pattern.compile("-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][-+]?[0-9]++)?");
  private static final String ESCAPES = "\"\\/bfnrt";
  private static final String ESCAPED = "\"\\/\b\f\n\r\t";

  private final String text;
  private int position;

  private JsonReader(String text) {
    this.text = text;
  }

  /**
   * Reads a text that is one value.
   *
   * @throws IOException if it is not
   */
  public static Object read(String text) throws IOException {
    JsonReader reader = new JsonReader(text);
    Object value = reader.value(0);
    reader.next();
    if (reader.position < text.length()) {
      throw reader.unexpected();
    }
    return value;
  }

  private Object value(int depth) throws IOException {
    if (depth > MOST_DEPTH) {
      throw unexpected();
    }
    return switch (next()) {
      case '{' -> members(depth);
      case '[' -> elements(depth);
      case '"' -> string();
      case 't' -> word("true", true);
      case 'f' -> word("false", false);
      case 'n' -> word("null", null);
      default -> number();
    };
  }

  private Map<String, Object> members(int depth) throws IOException {
    Map<String, Object> members = new LinkedHashMap<>();
    position++;
    if (taken('}')) {
      return members;
    }
    do {
      if (next() != '"') {
        throw unexpected();
      }
      String name = string();
      require(':');
      members.put(name, value(depth + 1));
    } while (taken(','));
    require('}');
    return members;
  }

  private List<Object> elements(int depth) throws IOException {
    List<Object> elements = new ArrayList<>();
    position++;
    if (taken(']')) {
      return elements;
    }
    do {
      elements.add(value(depth + 1));
    } while (taken(','));
    require(']');
    return elements;
  }

  private String string() throws IOException {
    StringBuilder string = new StringBuilder();
    position++;
    while (here() != '"') {
      char c = here();
      if (c < ' ') { // the end, too
        throw unexpected();
      }
      position++;
      string.append(c == '\\' ? escaped() : c);
    }
    position++;
    return string.toString();
  }

  private char escaped() throws IOException {
    char c = here();
    int index = ESCAPES.indexOf(c);
    if (index >= 0) {
      position++;
      return ESCAPED.charAt(index);
    }
    if (c != 'u') {
      throw unexpected();
    }
    int code = 0;
    for (int i = 0; i < 4; i++) {
      position++;
      if (!HexFormat.isHexDigit(here())) {
        throw unexpected();
      }
      code = code << 4 | HexFormat.fromHexDigit(here());
    }
    position++;
    return (char) code;
  }

  private Object word(String word, Object value) throws IOException {
    if (!text.startsWith(word, position)) {
      throw unexpected();
    }
    position += word.length();
    return value;
  }

  private Double number() throws IOException {
    Matcher matcher = NUMBER.matcher(text).region(position, text.length());
    if (!matcher.lookingAt()) {
      throw unexpected();
    }
    position = matcher.end();
    return Double.valueOf(matcher.group());
  }

  private boolean taken(char c) {
    if (next() != c) {
      return false;
    }
    position++;
    return true;
  }

  private void require(char c) throws IOException {
    if (!taken(c)) {
      throw unexpected();
    }
  }

  /** Skips white space, and returns what follows, or 0 at the end. */
  private char next() {
    while (" \t\r\n".indexOf(here()) >= 0) {
      position++;
    }
    return here();
  }

  private char here() {
    return position < text.length() ? text.charAt(position) : 0;
  }

  private IOException unexpected() {
    return new IOException("it is not JSON: character=" + position);
  }
}
