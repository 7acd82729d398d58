package org.gradientsync.examples;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.tools.perf.PerfJson;

/**
 * Writes a timeline in the Trace Event Format of chrome://tracing and Perfetto, with a process for
 * each rank and a thread for each of its streams.
 */
final class TimelineJson {
  private static final int COMPUTE = 0;
  private static final int AVERAGES = 1;
  private static final double NANOSECONDS_IN_MICROSECOND = 1e3;

  private TimelineJson() {}

  static String of(int ranks, List<TimelineEvent> events) {
    List<Object> list = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      list.add(name("process_name", rank, COMPUTE, "rank " + rank));
      list.add(name("thread_name", rank, COMPUTE, "compute"));
      list.add(name("thread_name", rank, AVERAGES, "averages"));
    }
    for (TimelineEvent event : events) {
      list.add(members(event));
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("displayTimeUnit", "ms");
    all.put("traceEvents", list);
    return PerfJson.of(all);
  }

  private static Map<String, Object> name(String what, int rank, int stream, String name) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("name", what);
    members.put("ph", "M");
    members.put("pid", rank);
    members.put("tid", stream);
    members.put("args", Map.of("name", name));
    return members;
  }

  private static Map<String, Object> members(TimelineEvent event) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("name", event.name());
    members.put("cat", event.kind().text);
    members.put("ph", "X");
    // Round both ends in the same way, so that the next event does not start before this one ends.
    long start = nanoseconds(event.start());
    members.put("ts", start / NANOSECONDS_IN_MICROSECOND);
    members.put("dur", (nanoseconds(event.end()) - start) / NANOSECONDS_IN_MICROSECOND);
    members.put("pid", event.rank());
    members.put("tid", event.isAverage() ? AVERAGES : COMPUTE);
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("step", event.step());
    if (event.isAverage()) {
      details.put("bytes", event.bytes());
      details.put("queuedMilliseconds", event.queued());
      details.put("exposedMilliseconds", event.exposed());
    }
    members.put("args", details);
    return members;
  }

  private static long nanoseconds(double milliseconds) {
    return Math.round(milliseconds * 1e6);
  }
}
