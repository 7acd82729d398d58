package org.gradientsync.examples;

import java.awt.BasicStroke;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Draws the loss over the steps as SVG. */
final class LossPlot {
  private static final int WIDTH = 900;
  private static final int HEIGHT = 500;

  private LossPlot() {}

  /** Draws the losses that fit on a logarithmic axis. There must be at least one. */
  static void write(Path file, String title, List<MlpTrainer.Loss> losses) throws IOException {
    List<MlpTrainer.Loss> drawn =
        losses.stream().filter(l -> l.loss() > 0 && Double.isFinite(l.loss())).toList();
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
    chart.getStyler().setYAxisLogarithmic(true);
    if (drawn.isEmpty()) {
      throw new IOException("there is no loss to draw");
    }
    chart
        .addSeries(
            "loss",
            drawn.stream().mapToDouble(MlpTrainer.Loss::step).toArray(),
            drawn.stream().mapToDouble(MlpTrainer.Loss::loss).toArray())
        .setMarker(SeriesMarkers.NONE);
    Svg.write(file, WIDTH, HEIGHT, graphics -> chart.paint(graphics, WIDTH, HEIGHT));
  }
}
