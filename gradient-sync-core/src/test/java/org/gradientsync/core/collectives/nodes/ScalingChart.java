package org.gradientsync.core.collectives.nodes;

import de.erichseifert.vectorgraphics2d.Processors;
import de.erichseifert.vectorgraphics2d.VectorGraphics2D;
import de.erichseifert.vectorgraphics2d.util.PageSize;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.io.IOException;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.math.MathContext;
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

  private final List<XYChart> panels = new ArrayList<>();

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
    chart.getStyler().setLegendVisible(panels.isEmpty());
    chart.getStyler().setChartBackgroundColor(Color.WHITE);
    // The SVG writer would write each dash separately, about a megabyte in all.
    chart.getStyler().setPlotGridLinesStroke(new BasicStroke(0.3f));
    chart.getStyler().setXAxisTickLabelsFormattingFunction(ScalingChart::power);
    chart.getStyler().setXAxisMaxLabelCount(ranks.length);
    chart.getStyler().setYAxisLogarithmic(true);
    chart.getStyler().setYAxisLogarithmicDecadeOnly(false);
    chart.getStyler().setYAxisTickLabelsFormattingFunction(ScalingChart::round);
    for (int line = 0; line < names.size(); line++) {
      List<Double> at = new ArrayList<>(); // logarithms to base 2
      List<Double> times = new ArrayList<>();
      for (int i = 0; i < ranks.length; i++) {
        Modelled model = lines.get(line)[i];
        if (model != null) {
          at.add(Math.log(ranks[i]) / Math.log(2));
          times.add(model.picoseconds() / MILLISECOND);
        }
      }
      chart.addSeries(names.get(line), at, times);
    }
    panels.add(chart);
  }

  /** Returns the number of ranks at a tick; empty between powers of two. */
  static String power(double logarithm) {
    long power = Math.round(logarithm);
    return Math.abs(power - logarithm) < 1e-6 ? String.valueOf(1L << power) : "";
  }

  /** Returns the number at a tick, which is empty at 3, 4, 6 and so on. */
  static String round(double value) {
    BigDecimal rounded = new BigDecimal(value).round(new MathContext(2)).stripTrailingZeros();
    return List.of(1, 2, 5).contains(rounded.unscaledValue().intValue())
        ? rounded.toPlainString()
        : "";
  }

  void write(Path file) throws IOException {
    VectorGraphics2D graphics = new VectorGraphics2D();
    paint(graphics);
    PageSize page = new PageSize(2 * WIDTH, (panels.size() + 1) / 2 * HEIGHT);
    try (OutputStream out = Files.newOutputStream(file)) {
      Processors.get("svg").getDocument(graphics.getCommands(), page).writeTo(out);
    }
  }

  void paint(Graphics2D graphics) {
    for (int panel = 0; panel < panels.size(); panel++) {
      int x = panel % 2 * WIDTH;
      int y = panel / 2 * HEIGHT;
      graphics.translate(x, y);
      panels.get(panel).paint(graphics, WIDTH, HEIGHT);
      graphics.translate(-x, -y);
    }
  }
}
