package org.gradientsync.tools.run;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gradientsync.tools.program.ToolException;

/** Hosts, each with how many ranks it can have, as in {@code a:2,b:2} or {@code [::1]:2}. */
record Hosts(Map<String, Integer> slots) {
  private static final String USER = "(?:[^:@\\s]+@)?";
  private static final String IPV6 = "[\\da-fA-F:.]*:[\\da-fA-F:.]*:[\\da-fA-F:.]*(?:%[\\w.-]+)?";
  private static final Pattern HOST =
      Pattern.compile("(?!-)(" + USER + "(?:\\[" + IPV6 + "]|[^:\\s]+))(?::([1-9]\\d{0,4}))?");

  static Hosts parse(String text) {
    Map<String, Integer> slots = new LinkedHashMap<>();
    for (String host : text.split(",", -1)) {
      if (host.matches(USER + IPV6)) {
        throw ToolException.badUse(
            "--hosts takes IPv6 addresses in brackets, as in [::1]:2: --hosts %s", text);
      }
      Matcher parts = HOST.matcher(host);
      if (!parts.matches()) {
        throw ToolException.badUse(
            "--hosts takes host names, each with its number of ranks, as in a:2,b:2: --hosts %s",
            text);
      }
      int count = parts.group(2) == null ? 1 : Integer.parseInt(parts.group(2));
      slots.merge(parts.group(1), count, Integer::sum);
    }
    return new Hosts(slots);
  }

  /** Returns a host as ssh takes it, which knows no brackets. */
  static String forSsh(String host) {
    return host.replaceFirst("\\[(" + IPV6 + ")]$", "$1");
  }

  /** MPI's launchers take a colon for the end of a name. */
  void requireNames() {
    slots.keySet().stream()
        .filter(host -> !forSsh(host).equals(host))
        .findFirst()
        .ifPresent(
            host -> {
              throw ToolException.badUse(
                  "MPI's launchers take no IPv6 addresses: --hosts %s; give host names, or"
                      + " --launcher tcp",
                  host);
            });
  }

  /** Returns how many ranks all hosts can have. */
  int ranks() {
    return slots.values().stream().mapToInt(Integer::intValue).sum();
  }

  /**
   * Returns how many of some ranks each host has, those without any left out: as many as it can
   * have, in the order of the hosts, and the rest by turns.
   */
  Map<String, Integer> filled(int ranks) {
    Map<String, Integer> counts = new LinkedHashMap<>();
    int left = ranks;
    for (Map.Entry<String, Integer> host : slots.entrySet()) {
      int count = Math.min(host.getValue(), left);
      if (count > 0) {
        counts.put(host.getKey(), count);
      }
      left -= count;
    }
    while (left > 0) {
      for (String host : slots.keySet()) {
        if (left > 0) {
          counts.merge(host, 1, Integer::sum);
          left--;
        }
      }
    }
    return counts;
  }

  /** Returns the hosts as mpirun and mpiexec take them. */
  String withSlots() {
    List<String> hosts = new ArrayList<>();
    slots.forEach((host, count) -> hosts.add(host + ":" + count));
    return String.join(",", hosts);
  }

  /** Returns the host of each rank, as srun takes it. */
  String ofEachRank() {
    List<String> hosts = new ArrayList<>();
    slots.forEach((host, count) -> hosts.addAll(Collections.nCopies(count, host)));
    return String.join(",", hosts);
  }
}
