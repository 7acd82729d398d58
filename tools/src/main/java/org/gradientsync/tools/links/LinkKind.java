package org.gradientsync.tools.links;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.gradientsync.tools.program.Program;

/**
 * Comparable figures of links, one for each measured pair.
 *
 * @param name what was measured, for example {@code GPU to GPU, one way}
 * @param unit the figures' unit
 * @param higherIsBetter true for a bandwidth, false for a time
 * @param links the measured links
 */
public record LinkKind(String name, String unit, boolean higherIsBetter, List<Link> links) {
  /** A link is slow if it has less than this share of its kind's median. */
  static final double SLOW = 0.8;

  /**
   * One direction of a connection.
   *
   * @param from the source, for example {@code GPU 0}
   * @param to the destination, for example {@code host}
   * @param value the figure
   * @param throughHost whether the copy went through the host, for lack of peer access
   */
  public record Link(String from, String to, double value, boolean throughHost) {
    @Override
    public String toString() {
      return from + " to " + to;
    }
  }

  /** Returns the median of the figures. */
  public double median() {
    return Program.median(links.stream().mapToDouble(Link::value).toArray());
  }

  /** Returns the links that are slower than the rest, in order. */
  List<Link> slow() {
    if (links.isEmpty()) {
      return List.of();
    }
    double median = median();
    return links.stream().filter(link -> shareOf(link.value(), median) < SLOW).toList();
  }

  /** Returns how good a figure is compared to the median: 1 is as good, 0.5 half as good. */
  private double shareOf(double value, double median) {
    return higherIsBetter ? value / median : median / value;
  }

  /** Describes the slow links, one in a line. */
  public List<String> complaints() {
    double median = links.isEmpty() ? 0 : median();
    return slow().stream()
        .map(
            link ->
                String.format(
                    Locale.ROOT,
                    "slow: %s, kind=%s, %s=%.1f, median=%.1f",
                    link,
                    name,
                    unit,
                    link.value(),
                    median))
        .toList();
  }

  /** Returns the figures as a matrix: a row for each sender, a column for each receiver. */
  List<String> lines() {
    List<String> senders = ends(Link::from);
    List<String> receivers = ends(Link::to);
    List<List<String>> rows = new ArrayList<>();
    List<String> head = new ArrayList<>(List.of("from \\ to"));
    head.addAll(receivers);
    rows.add(head);
    for (String sender : senders) {
      List<String> row = new ArrayList<>(List.of(sender));
      for (String receiver : receivers) {
        row.add(cell(sender, receiver));
      }
      rows.add(row);
    }
    List<String> lines = new ArrayList<>(List.of(name + ", " + unit));
    lines.addAll(aligned(rows));
    return lines;
  }

  /** Returns each end once, with GPU 2 before GPU 10. */
  private List<String> ends(Function<Link, String> end) {
    return links.stream()
        .map(end)
        .distinct()
        .sorted(Comparator.comparingInt(String::length).thenComparing(Comparator.naturalOrder()))
        .toList();
  }

  private String cell(String from, String to) {
    return links.stream()
        .filter(link -> link.from().equals(from) && link.to().equals(to))
        .map(
            link ->
                String.format(Locale.ROOT, "%.1f", link.value())
                    + (link.throughHost() ? " (no peer access)" : ""))
        .findFirst()
        .orElse("-");
  }

  /** Aligns the first column to the left, and the others to the right. */
  private static List<String> aligned(List<List<String>> rows) {
    List<String> lines = new ArrayList<>();
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < row.size(); i++) {
        int column = i;
        int width = rows.stream().mapToInt(each -> each.get(column).length()).max().orElseThrow();
        line.append(
            String.format(
                Locale.ROOT, i == 0 ? "%-" + width + "s" : "  %" + width + "s", row.get(i)));
      }
      lines.add(line.toString());
    }
    return lines;
  }
}
