package org.gradientsync.tools.perf;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * Formats lines like the programs of NVIDIA's nccl-tests, with its names of types and operations,
 * for scripts that parse them.
 */
final class PerfTable {
  private PerfTable() {}

  static List<String> header() {
    return List.of(
        "#",
        line(
            "# %10s  %12s  %8s  %6s  %6s  %30s  %30s",
            "", "", "", "", "", place("out-of-"), place("in-")),
        line("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root")
            + columns("time", "algbw", "busbw", "#wrong")
            + columns("time", "algbw", "busbw", "#wrong"),
        line("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "")
            + columns("(us)", "(GB/s)", "(GB/s)", "")
            + columns("(us)", "(GB/s)", "(GB/s)", ""));
  }

  private static String place(String which) {
    return which + "place          ";
  }

  /**
   * Returns a line of numbers.
   *
   * @param outOfPlace null if not measured
   * @param inPlace null if not measured
   */
  static String row(DataType type, ReduceOp op, PerfResult outOfPlace, PerfResult inPlace) {
    PerfResult any = inPlace != null ? inPlace : outOfPlace;
    return line(
            "%12d  %12d  %8s  %6s  %6d",
            any.bytes(),
            any.count(),
            name(type),
            name(any.collective(), op),
            any.collective().root())
        + numbers(outOfPlace)
        + numbers(inPlace);
  }

  /** Returns a line of what a call costs the host, if that was measured. */
  static Optional<String> hostCost(PerfResult result) {
    return Optional.ofNullable(result.host())
        .map(
            host ->
                line(
                    "# host: size=%d %s cpu=%.2f us, wall=%.2f us, allocated=%.1f bytes per call",
                    result.bytes(),
                    result.placement(),
                    host.cpuNanos() / 1e3,
                    host.wallNanos() / 1e3,
                    host.bytes()));
  }

  /** Returns the summary that nccl-tests prints at the end of a table. */
  static List<String> footer(List<PerfResult> results) {
    long wrong = results.stream().filter(r -> r.wrong() != null && r.wrong() > 0).count();
    double mean = results.stream().mapToDouble(PerfResult::busBandwidth).average().orElse(0);
    return List.of(
        line("# Out of bounds values : %d %s", wrong, wrong == 0 ? "OK" : "FAILED"),
        line("# Avg bus bandwidth    : %g", mean),
        "#");
  }

  private static String numbers(PerfResult result) {
    if (result == null) {
      return columns("N/A", "N/A", "N/A", "N/A");
    }
    return columns(
        time(result.microseconds()),
        line("%.2f", result.algorithmBandwidth()),
        line("%.2f", result.busBandwidth()),
        result.wrong() == null ? "N/A" : result.wrong().toString());
  }

  private static String columns(String time, String algorithm, String bus, String wrong) {
    return line("  %7s  %6s  %6s  %6s", time, algorithm, bus, wrong);
  }

  private static String time(double microseconds) {
    return line(
        microseconds >= 10_000 ? "%.0f" : microseconds >= 100 ? "%.1f" : "%.2f", microseconds);
  }

  private static String name(DataType type) {
    return switch (type) {
      case FLOAT16 -> "half";
      case BFLOAT16 -> "bfloat16";
      case FLOAT32 -> "float";
      case FLOAT64 -> "double";
      case INT32 -> "int32";
      case INT64 -> "int64";
    };
  }

  private static String name(PerfCollective collective, ReduceOp op) {
    if (!collective.reduces()) {
      return "none";
    }
    return op == ReduceOp.AVERAGE ? "avg" : op.name().toLowerCase(Locale.ROOT);
  }

  private static String line(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
