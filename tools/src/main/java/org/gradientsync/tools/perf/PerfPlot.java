package org.gradientsync.tools.perf;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.gradientsync.tools.plot.PlotTicks;
import org.gradientsync.tools.plot.Svg;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler;

/** Draws bus bandwidth and time over size, one below the other, as SVG. */
final class PerfPlot {
  private static final int WIDTH = 900;
  private static final int HEIGHT = 500;

  private PerfPlot() {}

  /**
   * Draws the results. There must be at least one.
   *
   * @param lines the results of each line by its name, in the order of the legend
   */
  static void write(Path file, String title, Map<String, List<PerfResult>> lines)
      throws IOException {
    Svg.write(file, WIDTH, 2 * HEIGHT, graphics -> paint(graphics, title, lines));
  }

  /**
   * Returns the results by the line to which they belong, in order.
   *
   * @param lineOf see {@link PerfProgram#line}
   */
  static Map<String, List<PerfResult>> lines(
      BiFunction<PerfResult, Boolean, String> lineOf,
      List<PerfResult> results,
      List<PerfResult> rivals) {
    boolean several =
        Stream.concat(results.stream(), rivals.stream()).map(PerfResult::reducer).distinct().count()
            > 1;
    Map<String, List<PerfResult>> lines = new LinkedHashMap<>();
    for (PerfResult result : results) {
      String line = lineOf.apply(result, several);
      if (line != null) {
        lines.computeIfAbsent(line, key -> new ArrayList<>()).add(result);
      }
    }
    boolean collectives = rivals.stream().map(PerfResult::collective).distinct().count() > 1;
    for (PerfResult rival : rivals) {
      String line = (collectives ? rival.collective() + ", " : "") + rival.reducer();
      lines.computeIfAbsent(line, key -> new ArrayList<>()).add(rival);
    }
    return lines;
  }

  static void paint(Graphics2D graphics, String title, Map<String, List<PerfResult>> lines) {
    chart(title, "bus bandwidth (GB/s)", PerfResult::busBandwidth, lines)
        .paint(graphics, WIDTH, HEIGHT);
    graphics.translate(0, HEIGHT);
    chart("", "time (us)", PerfResult::microseconds, lines).paint(graphics, WIDTH, HEIGHT);
  }

  static XYChart chart(
      String title,
      String unit,
      ToDoubleFunction<PerfResult> value,
      Map<String, List<PerfResult>> lines) {
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH)
            .height(HEIGHT)
            .title(title)
            .xAxisTitle("size (bytes; K, M and G are powers of 1024)")
            .yAxisTitle(unit)
            .build();
    chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideE);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    double[] values =
        lines.values().stream()
            .flatMap(List::stream)
            .mapToDouble(value)
            .filter(y -> y > 0)
            .toArray();
    PlotTicks.logarithmicY(chart.getStyler(), values);
    DoubleSummaryStatistics sizes =
        lines.values().stream()
            .flatMap(List::stream)
            .mapToDouble(PerfPlot::logarithm)
            .summaryStatistics();
    PlotTicks.sizesX(chart.getStyler(), Math.floor(sizes.getMin()), Math.floor(sizes.getMax()) + 1);
    lines.forEach(
        (name, results) -> {
          List<PerfResult> drawn =
              results.stream()
                  .filter(result -> value.applyAsDouble(result) > 0) // one rank has no bandwidth
                  .toList();
          if (!drawn.isEmpty()) {
            chart.addSeries(
                name,
                drawn.stream().mapToDouble(PerfPlot::logarithm).toArray(),
                drawn.stream().mapToDouble(value).toArray());
          }
        });
    return chart;
  }

  private static double logarithm(PerfResult result) {
    return Math.log(Math.max(1, result.bytes())) / Math.log(2);
  }
}
