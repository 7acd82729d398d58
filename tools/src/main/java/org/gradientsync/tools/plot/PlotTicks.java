package org.gradientsync.tools.plot;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.function.Function;
import org.knowm.xchart.style.AxesChartStyler;

/** The numbers at the axes of plots. */
public final class PlotTicks {
  private static final int MOST_DECADES = 4; // with three numbers each

  private PlotTicks() {}

  /** Makes the vertical axis logarithmic, with numbers at 1, 2, 5, 10 and so on. */
  public static void logarithmicY(AxesChartStyler styler, double... values) {
    styler.setYAxisLogarithmic(true);
    styler.setYAxisLogarithmicDecadeOnly(false);
    styler.setYAxisTickLabelsFormattingFunction(logarithmic(values));
  }

  /** Returns the text at a tick, which is empty at 3, 4, 6 and so on. */
  public static Function<Double, String> logarithmic(double... values) {
    double most = Arrays.stream(values).max().orElse(1);
    double least = Arrays.stream(values).min().orElse(1);
    boolean few = Math.log10(most / least) <= MOST_DECADES;
    return value -> {
      BigDecimal rounded = new BigDecimal(value).round(new MathContext(2)).stripTrailingZeros();
      int digits = rounded.unscaledValue().intValue();
      return digits == 1 || few && (digits == 2 || digits == 5) ? rounded.toPlainString() : "";
    };
  }

  /**
   * Makes the horizontal axis one of sizes, of which the data has the logarithms to base 2.
   *
   * @param from the least logarithm, rounded down
   * @param to the largest, rounded up
   */
  public static void sizesX(AxesChartStyler styler, double from, double to) {
    styler.setXAxisMin(from);
    styler.setXAxisMax(to);
    styler.setXAxisTickLabelsFormattingFunction(PlotTicks::size);
  }

  /** Returns the size at a tick, for example {@code 4K}; empty between powers of two. */
  public static String size(double logarithm) {
    int power = (int) Math.rint(logarithm);
    if (Math.abs(power - logarithm) > 1e-6 || power < 0 || power >= 60) {
      return "";
    }
    return (1 << power % 10) + " KMGTP".substring(power / 10, power / 10 + 1).strip();
  }
}
