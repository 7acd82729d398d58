package org.gradientsync.examples;

import java.awt.BasicStroke;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.tools.plot.PlotTicks;
import org.gradientsync.tools.plot.Svg;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Draws the loss over the steps as SVG. */
final class LossPlot {
  private static final int WIDTH = 900;
  private static final int HEIGHT = 500;
  private static final int STEP_SPACING = 80; // pixels

  private LossPlot() {}

  /** Draws the losses that fit on a logarithmic axis. There must be at least one. */
  static void write(Path file, String title, List<MlpTrainer.Loss> losses) throws IOException {
    List<MlpTrainer.Loss> drawn =
        losses.stream().filter(l -> l.loss() > 0 && Double.isFinite(l.loss())).toList();
    if (drawn.isEmpty()) {
      throw new IOException("there is no loss to draw");
    }
    XYChart chart = chart(title, drawn);
    Svg.write(file, WIDTH, HEIGHT, graphics -> chart.paint(graphics, WIDTH, HEIGHT));
  }

  static XYChart chart(String title, List<MlpTrainer.Loss> drawn) {
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH)
            .height(HEIGHT)
            .title(title)
            .xAxisTitle("step")
            .yAxisTitle("loss")
            .build();
    chart.getStyler().setLegendVisible(false);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    PlotTicks.logarithmicY(
        chart.getStyler(), drawn.stream().mapToDouble(MlpTrainer.Loss::loss).toArray());
    chart.getStyler().setXAxisTickMarkSpacingHint(STEP_SPACING);
    // Of equally spaced steps, XChart would show those that fit, and they touch: so there is one
    // more point, which is not drawn and not in line.
    int last = drawn.size();
    double[] steps = new double[last + 1];
    double[] values = new double[last + 1];
    Arrays.setAll(steps, i -> i < last ? drawn.get(i).step() : drawn.get(last - 1).step() + 0.5);
    Arrays.setAll(values, i -> i < last ? drawn.get(i).loss() : Double.NaN);
    chart.addSeries("loss", steps, values).setMarker(SeriesMarkers.NONE);
    return chart;
  }
}
