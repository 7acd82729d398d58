package org.gradientsync.tools.links;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.gradientsync.tools.perf.PerfJson;

/**
 * The results of link-perf, as text and as JSON.
 *
 * @param gpus one line about each GPU
 * @param bytes the size of each copy
 * @param repeats the number of repeats of each measurement
 * @param kinds the figures
 */
record LinkReport(List<String> gpus, long bytes, int repeats, List<LinkKind> kinds) {
  List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.add("GPUs: " + gpus.size() + ", bytes: " + bytes + ", repeats: " + repeats);
    gpus.forEach(gpu -> lines.add("  " + gpu));
    for (LinkKind kind : kinds) {
      lines.add("");
      lines.addAll(kind.lines());
    }
    lines.add("");
    List<String> complaints = kinds.stream().flatMap(k -> k.complaints().stream()).toList();
    lines.addAll(complaints);
    if (complaints.isEmpty()) {
      lines.add(
          String.format(
              Locale.ROOT,
              "No link is slow: each reaches %.0f %% of its kind's median.",
              100 * LinkKind.SLOW));
    }
    return lines;
  }

  String json(Instant date) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("program", "link-perf");
    members.put("date", date.truncatedTo(ChronoUnit.SECONDS).toString());
    members.put("gpus", gpus);
    members.put("bytes", bytes);
    members.put("repeats", repeats);
    members.put("kinds", kinds.stream().map(LinkReport::members).toList());
    return PerfJson.of(members);
  }

  private static Map<String, Object> members(LinkKind kind) {
    List<LinkKind.Link> slow = kind.slow();
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("name", kind.name());
    members.put("unit", kind.unit());
    members.put(
        "links", kind.links().stream().map(link -> members(link, slow.contains(link))).toList());
    return members;
  }

  private static Map<String, Object> members(LinkKind.Link link, boolean slow) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("from", link.from());
    members.put("to", link.to());
    members.put("value", link.value());
    members.put("throughHost", link.throughHost());
    members.put("slow", slow);
    return members;
  }
}
