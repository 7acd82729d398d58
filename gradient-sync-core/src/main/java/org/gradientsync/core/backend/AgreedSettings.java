package org.gradientsync.core.backend;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.gradientsync.spi.Settings;

/**
 * The settings that all ranks of a sync give alike. With different wire types or orders, ranks
 * would have different weights after the first step; with different checks, some ranks would not
 * detect their own values that are not finite.
 */
public final class AgreedSettings {
  private static final String BETWEEN = ", ";

  private AgreedSettings() {}

  /**
   * Writes what one rank gives.
   *
   * @param settings the rank's
   * @return {@code name=value} pairs on one line, the same text if the settings mean the same
   */
  public static String of(Settings settings) {
    String text =
        String.join(
            BETWEEN,
            "wire=" + settings.get("wire").orElse("(none)"),
            "order=" + settings.order(),
            "finite=" + settings.finite(),
            "elastic=" + settings.elastic(),
            "device=" + settings.device().orElse("(any)"),
            "reducer=" + settings.get("reducer").orElse("(any)"));
    return ShortText.oneLine(text.toLowerCase(Locale.ROOT));
  }

  /**
   * Leaves out what all have in common.
   *
   * @param texts of one rank each
   * @return the rest of each text, in the same order; empty texts if all are the same
   */
  public static List<String> differing(List<String> texts) {
    List<List<String>> all = texts.stream().map(text -> List.of(text.split(BETWEEN))).toList();
    return all.stream()
        .map(
            own ->
                own.stream()
                    .filter(value -> !all.stream().allMatch(other -> other.contains(value)))
                    .collect(Collectors.joining(BETWEEN)))
        .toList();
  }

  /**
   * Compares what two processes give.
   *
   * @param job what the ranks of a job give
   * @param other what another process gives; not trusted
   * @return what differs and what to do, or an empty text
   */
  public static String difference(String job, String other) {
    if (job.equals(other)) {
      return "";
    }
    List<String> rest = differing(List.of(job, other));
    String names =
        rest.stream()
            .flatMap(text -> Stream.of(text.split(BETWEEN)))
            .filter(value -> !value.isEmpty())
            .map(value -> "gradientsync." + value.split("=")[0])
            .distinct()
            .collect(Collectors.joining(" and "));
    return "the job has %s, this process %s; set %s as in the job, and start this process again"
        .formatted(rest.get(0), rest.get(1), names);
  }
}
