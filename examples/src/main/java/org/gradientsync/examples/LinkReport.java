package org.gradientsync.examples;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * What link-perf found out, as text and as JSON.
 *
 * @param gpus one line about each
 * @param bytes of each copy
 * @param repeats of each measurement
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
    return String.format(
        Locale.ROOT,
        "{\"program\":\"link-perf\",\"date\":%s,\"gpus\":[%s],\"bytes\":%d,\"repeats\":%d,"
            + "\"kinds\":[%n%s]}%n",
        quoted(date.truncatedTo(ChronoUnit.SECONDS).toString()),
        gpus.stream().map(LinkReport::quoted).collect(Collectors.joining(",")),
        bytes,
        repeats,
        kinds.stream().map(LinkReport::json).collect(Collectors.joining(",\n")));
  }

  private static String json(LinkKind kind) {
    List<LinkKind.Link> slow = kind.slow();
    return String.format(
        Locale.ROOT,
        "{\"name\":%s,\"unit\":%s,\"links\":[%n%s]}",
        quoted(kind.name()),
        quoted(kind.unit()),
        kind.links().stream()
            .map(link -> json(link, slow.contains(link)))
            .collect(Collectors.joining(",\n")));
  }

  private static String json(LinkKind.Link link, boolean slow) {
    return String.format(
        Locale.ROOT,
        "{\"from\":%s,\"to\":%s,\"value\":%.3f,\"throughHost\":%b,\"slow\":%b}",
        quoted(link.from()),
        quoted(link.to()),
        link.value(),
        link.throughHost(),
        slow);
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
