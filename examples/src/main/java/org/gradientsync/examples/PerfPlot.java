package org.gradientsync.examples;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
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
   * @param line the name of the line to which a result belongs
   */
  static void write(
      Path file, String title, List<PerfResult> results, Function<PerfResult, String> line)
      throws IOException {
    Svg.write(file, WIDTH, 2 * HEIGHT, graphics -> paint(graphics, title, results, line));
  }

  private static void paint(
      Graphics2D graphics,
      String title,
      List<PerfResult> results,
      Function<PerfResult, String> line) {
    chart(title, "bus bandwidth (GB/s)", PerfResult::busBandwidth, results, line)
        .paint(graphics, WIDTH, HEIGHT);
    graphics.translate(0, HEIGHT);
    chart("", "time (us)", PerfResult::microseconds, results, line).paint(graphics, WIDTH, HEIGHT);
  }

  private static XYChart chart(
      String title,
      String unit,
      ToDoubleFunction<PerfResult> value,
      List<PerfResult> results,
      Function<PerfResult, String> lineOf) {
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH)
            .height(HEIGHT)
            .title(title)
            .xAxisTitle("size (bytes)")
            .yAxisTitle(unit)
            .build();
    chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideE);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    chart.getStyler().setXAxisLogarithmic(true);
    chart.getStyler().setYAxisLogarithmic(true);
    Map<String, List<PerfResult>> lines = new LinkedHashMap<>();
    for (PerfResult result : results) {
      if (value.applyAsDouble(result) > 0) { // a single rank has no bus bandwidth
        lines.computeIfAbsent(lineOf.apply(result), key -> new ArrayList<>()).add(result);
      }
    }
    lines.forEach(
        (name, line) ->
            chart.addSeries(
                name,
                line.stream().mapToDouble(PerfResult::bytes).toArray(),
                line.stream().mapToDouble(value).toArray()));
    return chart;
  }
}
