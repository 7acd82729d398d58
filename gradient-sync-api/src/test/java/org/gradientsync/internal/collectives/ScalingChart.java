package org.gradientsync.internal.collectives;

import de.erichseifert.vectorgraphics2d.Processors;
import de.erichseifert.vectorgraphics2d.VectorGraphics2D;
import de.erichseifert.vectorgraphics2d.util.PageSize;
import java.awt.BasicStroke;
import java.awt.Color;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler;

/** Draws modelled times over the number of ranks: a panel for each size, two in a row, as SVG. */
final class ScalingChart {
  private static final int WIDTH = 560;
  private static final int HEIGHT = 400;
  private static final double MILLISECOND = ModelledMachine.SECOND / 1000;

  private final VectorGraphics2D graphics = new VectorGraphics2D();
  private int panels;

  ScalingChart() {
    System.setProperty("java.awt.headless", "true");
  }

  /**
   * Adds a panel.
   *
   * @param lines the models of each line by the numbers of ranks; null where there is none
   */
  void add(String title, List<String> names, int[] ranks, List<Modelled[]> lines) {
    XYChart chart =
        new XYChartBuilder()
            .width(WIDTH)
            .height(HEIGHT)
            .title(title)
            .xAxisTitle("ranks")
            .yAxisTitle("modelled time (ms)")
            .build();
    chart.getStyler().setLegendPosition(Styler.LegendPosition.InsideNW);
    chart.getStyler().setLegendVisible(panels == 0);
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    chart.getStyler().setXAxisLogarithmic(true);
    chart.getStyler().setYAxisLogarithmic(true);
    for (int line = 0; line < names.size(); line++) {
      List<Integer> at = new ArrayList<>();
      List<Double> times = new ArrayList<>();
      for (int i = 0; i < ranks.length; i++) {
        Modelled model = lines.get(line)[i];
        if (model != null) {
          at.add(ranks[i]);
          times.add(model.picoseconds() / MILLISECOND);
        }
      }
      chart.addSeries(names.get(line), at, times);
    }
    graphics.translate(panels % 2 * WIDTH, panels / 2 * HEIGHT);
    chart.paint(graphics, WIDTH, HEIGHT);
    graphics.translate(-(panels % 2) * WIDTH, -(panels / 2) * HEIGHT);
    panels++;
  }

  void write(Path file) throws IOException {
    PageSize page = new PageSize(2 * WIDTH, (panels + 1) / 2 * HEIGHT);
    try (OutputStream out = Files.newOutputStream(file)) {
      Processors.get("svg").getDocument(graphics.getCommands(), page).writeTo(out);
    }
  }
}
