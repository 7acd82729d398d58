package org.gradientsync.tools.perf;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Formats results as JSON. */
public final class PerfJson {
  private PerfJson() {}

  /**
   * Returns one object.
   *
   * @param about the members that hold for all results
   * @param rivals what others took, if it is known
   */
  static String of(Map<String, Object> about, List<PerfResult> results, List<PerfResult> rivals) {
    Map<String, Object> all = new LinkedHashMap<>(about);
    List<Object> list = new ArrayList<>();
    for (PerfResult result : results) {
      list.add(members(result));
    }
    all.put("results", list);
    if (!rivals.isEmpty()) {
      all.put("rivals", rivals.stream().map(PerfJson::rivalMembers).toList());
    }
    return of(all);
  }

  /**
   * Returns one object.
   *
   * @param all the object's members: numbers, strings, booleans, lists and maps
   * @return the object's text, ending with a newline
   */
  public static String of(Map<String, Object> all) {
    StringBuilder text = new StringBuilder();
    append(text, all);
    return text.append('\n').toString();
  }

  private static Map<String, Object> rivalMembers(PerfResult rival) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("collective", rival.collective().toString());
    members.put("name", rival.reducer());
    members.put("bytes", rival.bytes());
    members.put("microseconds", rival.microseconds());
    members.put("algbw", rival.algorithmBandwidth());
    members.put("busbw", rival.busBandwidth());
    return members;
  }

  private static Map<String, Object> members(PerfResult result) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("collective", result.collective().toString());
    members.put("reducer", result.reducer());
    members.put("bytes", result.bytes());
    members.put("count", result.count());
    members.put("placement", result.placement());
    members.put("microseconds", result.microseconds());
    members.put("rounds", result.rounds());
    members.put("algbw", result.algorithmBandwidth());
    members.put("busbw", result.busBandwidth());
    members.put("wrong", result.wrong());
    if (result.host() != null) {
      members.put("hostNanos", result.host().cpuNanos());
      members.put("hostWallNanos", result.host().wallNanos());
      members.put("hostBytes", result.host().bytes());
    }
    return members;
  }

  private static void append(StringBuilder text, Object value) {
    if (value instanceof Map<?, ?> members) {
      text.append('{');
      String before = "";
      for (Map.Entry<?, ?> member : members.entrySet()) {
        text.append(before);
        append(text, member.getKey());
        text.append(": ");
        append(text, member.getValue());
        before = ", ";
      }
      text.append('}');
    } else if (value instanceof List<?> list) {
      text.append('[');
      String before = "";
      for (Object element : list) {
        text.append(before).append(element instanceof Map ? "\n  " : "");
        append(text, element);
        before = ", ";
      }
      text.append(']');
    } else if (value instanceof String string) {
      text.append('"');
      string.codePoints().forEach(c -> appendCharacter(text, c));
      text.append('"');
    } else if (value instanceof Double number && !Double.isFinite(number)) {
      text.append("null"); // JSON has no infinity, which a time too short for the clock gives
    } else {
      text.append(value); // a number, true, false or null
    }
  }

  private static void appendCharacter(StringBuilder text, int c) {
    if (c == '"' || c == '\\') {
      text.append('\\').append((char) c);
    } else if (c < ' ') {
      text.append(String.format(Locale.ROOT, "\\u%04x", c));
    } else {
      text.appendCodePoint(c);
    }
  }
}
