package org.gradientsync.examples;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.gradientsync.tools.plot.Svg;
import org.knowm.xchart.AnnotationLine;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Draws a timeline as SVG, with two rows of bars for each rank. */
final class TimelinePlot {
  private static final int WIDTH = 1400;
  private static final int NAMES = 140; // the names of the rows
  private static final int MARGIN = 10;
  private static final int ROW = 36;
  private static final int BAR = 22;
  private static final int AROUND = 150; // title, legend and axis
  private static final int STREAMS = 2;
  private static final double HEAD = 0.5; // rows above the first one, for the numbers of the steps

  private TimelinePlot() {}

  /** Draws events. There must be at least one. */
  static void write(Path file, String title, int ranks, List<TimelineEvent> events)
      throws IOException {
    int height = ranks * STREAMS * ROW + AROUND;
    Svg.write(file, WIDTH, height, graphics -> paint(graphics, title, ranks, events));
  }

  static void paint(Graphics2D graphics, String title, int ranks, List<TimelineEvent> events) {
    int rows = ranks * STREAMS;
    int height = rows * ROW + AROUND;
    graphics.setColor(Color.WHITE);
    graphics.fillRect(0, 0, NAMES, height);
    graphics.translate(NAMES, 0);
    XYChart chart = chart(title, rows, height, events);
    chart.paint(graphics, WIDTH - NAMES, height);
    // XChart would choose other places for tick labels, and centre the steps' numbers on their
    // lines.
    graphics.setColor(Color.BLACK);
    graphics.setFont(chart.getStyler().getAxisTickLabelsFont());
    for (int row = 0; row < rows; row++) {
      int y = (int) Math.round(chart.getScreenYFromChart(height(row, rows)));
      graphics.drawString(name(row), MARGIN - NAMES, y + MARGIN / 2);
    }
    int y = (int) Math.round(chart.getScreenYFromChart(rows - 0.5 + HEAD / 2));
    stepStarts(events)
        .forEach(
            (step, start) -> {
              int x = (int) Math.round(chart.getScreenXFromChart(start));
              graphics.drawString("step " + step, x + MARGIN / 2, y + MARGIN / 2);
            });
  }

  static XYChart chart(String title, int rows, int height, List<TimelineEvent> events) {
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH - NAMES)
            .height(height)
            .title(title)
            .xAxisTitle("time (ms)")
            .build();
    chart.getStyler().setLegendPosition(Styler.LegendPosition.OutsideS);
    chart.getStyler().setLegendLayout(Styler.LegendLayout.Horizontal);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    chart.getStyler().setPlotGridHorizontalLinesVisible(false);
    chart.getStyler().setYAxisMin(-0.5);
    chart.getStyler().setYAxisMax(rows - 0.5 + HEAD);
    chart.getStyler().setYAxisTicksVisible(false);
    chart.getStyler().setXAxisMin(0.0);
    // A line where the first rank begins a step.
    stepStarts(events)
        .values()
        .forEach(start -> chart.addAnnotation(new AnnotationLine(start, true, false)));
    for (TimelineEvent.Kind kind : TimelineEvent.Kind.values()) {
      // Neighbours have different shades, to tell them apart.
      add(chart, kind, rows, events, 0);
      add(chart, kind, rows, events, 1);
    }
    return chart;
  }

  /** Returns when the first rank began each step. */
  static Map<Long, Double> stepStarts(List<TimelineEvent> events) {
    Map<Long, Double> starts = new TreeMap<>();
    events.forEach(event -> starts.merge(event.step(), event.start(), Math::min));
    return starts;
  }

  /** Returns where a row is on the axis. The first one is at the top. */
  private static double height(int row, int rows) {
    return rows - 1 - row;
  }

  private static int row(TimelineEvent event) {
    return event.rank() * STREAMS + (event.isAverage() ? 1 : 0);
  }

  static String name(int row) {
    return "rank " + row / STREAMS + (row % STREAMS == 0 ? " compute" : " averages");
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
      y[3 * i] = height(row(bars.get(i)), rows);
      y[3 * i + 1] = y[3 * i];
      y[3 * i + 2] = Double.NaN; // breaks the line
    }
    XYSeries series = chart.addSeries(legend(kind, oddOrEven), x, y);
    Color color = color(kind);
    series.setLineColor(oddOrEven == 0 ? color : color.darker());
    series.setLineStyle(new BasicStroke(BAR, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER));
    series.setMarker(SeriesMarkers.NONE);
  }

  private static String legend(TimelineEvent.Kind kind, int oddOrEven) {
    return kind.text + (oddOrEven == 0 ? "" : ", odd " + kind.counted + "s");
  }

  private static Color color(TimelineEvent.Kind kind) {
    return switch (kind) {
      case FORWARD -> new Color(0x6baed6);
      case BACKWARD -> new Color(0xfdae6b);
      case UPDATE, SHARD -> new Color(0x74c476);
      case AVERAGE -> new Color(0xb39ddb);
    };
  }
}
