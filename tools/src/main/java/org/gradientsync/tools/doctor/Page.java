package org.gradientsync.tools.doctor;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.gradientsync.tools.perf.PerfJson;

/**
 * What all ranks have found out, with the verdicts.
 *
 * @param size the number of ranks, including those without a report
 * @param note a note to the reader at the top, may be empty
 * @param reports the ranks' reports, in rank order
 * @param findings the verdicts
 */
record Page(int size, String note, List<Report> reports, List<Finding> findings) {
  private static final String INDENT = "  ";

  boolean hasProblems() {
    return findings.stream().anyMatch(Finding::isProblem);
  }

  /** Returns what is equal on all ranks once, and what differs for each rank. */
  List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.add("gradient-sync doctor: " + title());
    if (!note.isEmpty()) {
      lines.add(note);
    }
    for (String section : sections()) {
      lines.add("");
      lines.add(section);
      Set<String> names = names(section);
      int width = names.stream().mapToInt(String::length).max().orElse(0);
      for (String name : names) {
        String key = String.format(Locale.ROOT, "%s%-" + width + "s  ", INDENT, name);
        for (String value : values(section, name)) {
          for (String line : value.split("\n")) {
            lines.add((key + line).stripTrailing());
            key = " ".repeat(key.length());
          }
        }
      }
    }
    addFindings(lines, "Worth knowing", false);
    addFindings(lines, "Problems", true);
    if (!hasProblems()) {
      lines.add("");
      lines.add("No problems found.");
    }
    return lines;
  }

  private String title() {
    int told = reports.size();
    String all = size == 1 ? "1 rank" : size + " ranks";
    return size <= told ? all : "facts of " + ranks(reports) + ", of " + all;
  }

  private void addFindings(List<String> lines, String heading, boolean problems) {
    List<Finding> those =
        findings.stream().filter(finding -> finding.isProblem() == problems).toList();
    if (those.isEmpty()) {
      return;
    }
    lines.add("");
    lines.add(heading);
    int number = 1;
    for (Finding finding : those) {
      String where =
          finding.ranks().size() == reports.size() || finding.ranks().isEmpty()
              ? ""
              : " (" + Ranks.text(finding.ranks()) + ")";
      lines.add(INDENT + number++ + ". " + finding.what() + where);
      lines.add(INDENT + "   " + finding.remedy());
    }
  }

  /** Returns one line if all ranks agree, otherwise one for each value. */
  private List<String> values(String section, String name) {
    Map<String, List<Report>> values = new LinkedHashMap<>();
    for (Report report : reports) {
      if (report.has(section, name)) {
        values.computeIfAbsent(report.get(section, name), value -> new ArrayList<>()).add(report);
      }
    }
    List<String> lines = new ArrayList<>();
    values.forEach(
        (value, those) ->
            lines.add(those.size() == reports.size() ? value : ranks(those) + ": " + value));
    return lines;
  }

  private static String ranks(List<Report> reports) {
    return Ranks.text(reports.stream().map(Report::rank).toList());
  }

  private Set<String> sections() {
    Set<String> sections = new LinkedHashSet<>();
    reports.forEach(report -> sections.addAll(report.facts().copy().keySet()));
    return sections;
  }

  private Set<String> names(String section) {
    Set<String> names = new LinkedHashSet<>();
    reports.forEach(report -> names.addAll(report.facts().section(section).keySet()));
    return names;
  }

  /** Returns the page as JSON. */
  String json(Instant date) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("program", "doctor");
    all.put("date", date.truncatedTo(ChronoUnit.SECONDS).toString());
    all.put("size", size);
    all.put("note", note);
    all.put(
        "ranks",
        reports.stream()
            .<Object>map(
                report -> {
                  Map<String, Object> members = new LinkedHashMap<>();
                  members.put("rank", report.rank());
                  members.put("facts", report.facts().copy());
                  return members;
                })
            .toList());
    all.put("problems", json(true));
    all.put("worthKnowing", json(false));
    return PerfJson.of(all);
  }

  private List<Object> json(boolean problems) {
    List<Object> list = new ArrayList<>();
    for (Finding finding : findings) {
      if (finding.isProblem() == problems) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("what", finding.what());
        members.put("remedy", finding.remedy());
        members.put("ranks", List.copyOf(finding.ranks()));
        list.add(members);
      }
    }
    return list;
  }
}
