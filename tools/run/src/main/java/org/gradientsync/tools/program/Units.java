package org.gradientsync.tools.program;

import java.util.Locale;

/** Times in the unit that suits them. */
public final class Units {
  private Units() {}

  /** Returns a time in milliseconds as text, for example {@code 12.3 us}, {@code 4.56 ms}. */
  public static String time(double milliseconds) {
    return milliseconds < 1
        ? number(milliseconds * 1e3) + " us"
        : milliseconds < 1e3 ? number(milliseconds) + " ms" : number(milliseconds / 1e3) + " s";
  }

  /** Three digits. */
  private static String number(double value) {
    int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    return String.format(Locale.ROOT, "%." + decimals + "f", value);
  }
}
