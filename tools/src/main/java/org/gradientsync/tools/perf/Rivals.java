package org.gradientsync.tools.perf;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.tools.program.Program;

/** Reads what {@code examples/compare/collectives.py} measured. */
final class Rivals {
  private static final int MOST_BYTES = 16 << 20;

  private Rivals() {}

  /**
   * Reads a file.
   *
   * @return a result for each figure, with the rival as its reducer
   * @throws IOException if the file cannot be read, or is no such file; the message says why
   */
  static List<PerfResult> read(Path file) throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      return parse(new String(in.readNBytes(MOST_BYTES), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new IOException("file=" + file + ", error=" + Program.reason(e), e);
    }
  }

  static List<PerfResult> parse(String text) throws IOException {
    Map<?, ?> document = object(json(text));
    // Files from before there was a choice are of all-reduces.
    Object name = document.containsKey("collective") ? document.get("collective") : "all-reduce";
    PerfCollective collective =
        PerfCollective.of(String.valueOf(name))
            .orElseThrow(() -> new IOException("no such collective: collective=" + name));
    int ranks = (int) positive(document, "ranks", Short.MAX_VALUE);
    if (!(document.get("results") instanceof List<?> list)) {
      throw new IOException("it has no list of results");
    }
    List<PerfResult> results = new ArrayList<>();
    for (Object element : list) {
      results.add(result(collective, ranks, object(element)));
    }
    return results;
  }

  private static Object json(String text) throws IOException {
    try (JsonParser parser = JSON.std.createParser(text)) {
      try {
        Object value = JSON.std.anyFrom(parser);
        if (parser.nextToken() == null) {
          return value;
        }
        throw new JsonParseException(parser, "more than one value");
      } catch (JsonProcessingException e) {
        long position = parser.currentLocation().getCharOffset();
        throw new IOException("it is not JSON: character=" + position);
      }
    }
  }

  private static PerfResult result(PerfCollective collective, int ranks, Map<?, ?> members)
      throws IOException {
    if (!(members.get("name") instanceof String name) || name.isBlank()) {
      throw new IOException("a result has no name");
    }
    long bytes = (long) positive(members, "bytes", 1L << 50);
    return new PerfResult(
        collective,
        name,
        collective.hasInPlace(),
        bytes,
        bytes / Float.BYTES / collective.parts(ranks),
        ranks,
        List.of(positive(members, "microseconds", Float.MAX_VALUE)),
        null,
        null);
  }

  private static Map<?, ?> object(Object value) throws IOException {
    if (value instanceof Map<?, ?> members) {
      return members;
    }
    throw new IOException("an object is expected");
  }

  private static double positive(Map<?, ?> members, String name, double most) throws IOException {
    if (members.get(name) instanceof Number number
        && number.doubleValue() > 0
        && number.doubleValue() <= most) {
      return number.doubleValue();
    }
    throw new IOException("not a positive number: " + name + "=" + members.get(name));
  }
}
