package org.gradientsync.examples;

import java.awt.BasicStroke;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** A timeline as SVG: two rows for each rank, with bars for what its streams did. */
final class TimelinePlot {
  private static final int WIDTH = 1400;
  private static final int ROW = 36;
  private static final int BAR = 22;
  private static final int AROUND = 130; // title, legend and axis
  private static final int STREAMS = 2;

  private TimelinePlot() {}

  /** Draws events; there must be some. */
  static void write(Path file, String title, int ranks, List<TimelineEvent> events)
      throws IOException {
    XYChart chart = chart(title, ranks, events);
    Svg.write(
        file,
        WIDTH,
        chart.getHeight(),
        graphics -> chart.paint(graphics, WIDTH, chart.getHeight()));
  }

  static XYChart chart(String title, int ranks, List<TimelineEvent> events) {
    int rows = ranks * STREAMS;
    int height = (rows + 1) * ROW + AROUND;
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH)
            .height(height)
            .title(title)
            .xAxisTitle("time (ms)")
            .build();
    chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideS);
    chart.getStyler().setLegendLayout(Styler.LegendLayout.Horizontal);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // Dashes would be written one by one, and make a file of a megabyte.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    chart.getStyler().setPlotGridHorizontalLinesVisible(false);
    chart.getStyler().setYAxisMin(-1.0);
    chart.getStyler().setYAxisMax((double) rows);
    chart.getStyler().setYAxisTickMarkSpacingHint(ROW - 6);
    chart.getStyler().setXAxisMin(0.0);
    chart.setCustomYAxisTickLabelsFormatter(value -> label(value, rows));
    for (TimelineEvent.Kind kind : TimelineEvent.Kind.values()) {
      // Neighbours differ in shade, so that one can tell them apart.
      add(chart, kind, rows, events, 0);
      add(chart, kind, rows, events, 1);
    }
    return chart;
  }

  private static double row(TimelineEvent event, int rows) {
    return rows - 1 - (event.rank() * STREAMS + (event.isAverage() ? 1 : 0));
  }

  /** A row's name. Between the rows blanks, which differ: XChart draws labels only if all do. */
  static String label(double value, int rows) {
    long row = Math.round(value);
    if (Math.abs(value - row) > 1e-6 || row < 0 || row >= rows) {
      return " ".repeat(1 + (int) Math.abs(value * 10));
    }
    long fromTop = rows - 1 - row;
    return "rank " + fromTop / STREAMS + (fromTop % STREAMS == 0 ? " compute" : " averages");
  }

  private static void add(
      XYChart chart, TimelineEvent.Kind kind, int rows, List<TimelineEvent> events, int oddOrEven) {
    List<TimelineEvent> bars =
        events.stream().filter(e -> e.kind() == kind && e.number() % 2 == oddOrEven).toList();
    if (bars.isEmpty()) {
      return;
    }
    double[] x = new double[3 * bars.size()];
    double[] y = new double[3 * bars.size()];
    for (int i = 0; i < bars.size(); i++) {
      x[3 * i] = bars.get(i).start();
      x[3 * i + 1] = bars.get(i).end();
      x[3 * i + 2] = bars.get(i).end();
      y[3 * i] = row(bars.get(i), rows);
      y[3 * i + 1] = y[3 * i];
      y[3 * i + 2] = Double.NaN; // interrupts the line
    }
    XYSeries series = chart.addSeries(kind.text + (oddOrEven == 0 ? "" : ", odd"), x, y);
    Color color = color(kind);
    series.setLineColor(oddOrEven == 0 ? color : color.darker());
    series.setLineStyle(new BasicStroke(BAR, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER));
    series.setMarker(SeriesMarkers.NONE);
    series.setShowInLegend(oddOrEven == 0);
  }

  private static Color color(TimelineEvent.Kind kind) {
    return switch (kind) {
      case FORWARD -> new Color(0x6baed6);
      case BACKWARD -> new Color(0xfdae6b);
      case UPDATE -> new Color(0x74c476);
      case AVERAGE -> new Color(0xb39ddb);
    };
  }
}
