package org.gradientsync.spi;

import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.gradientsync.DataType;

/**
 * What the user asked for: the builder's values first, then system properties named {@code
 * gradientsync.*}.
 */
public final class Settings {
  /** The default of {@link #timeout()}. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  private final Map<String, String> chosen;

  /**
   * Settings made by a builder.
   *
   * @param chosen values by name without the prefix {@code gradientsync.}, which win over system
   *     properties
   */
  public Settings(Map<String, String> chosen) {
    this.chosen = Map.copyOf(chosen);
  }

  /**
   * One setting.
   *
   * @param name the name without the prefix, for example {@code reducer}
   * @return the value, or empty if nobody set it
   */
  public Optional<String> get(String name) {
    String value = chosen.get(name);
    return Optional.ofNullable(value != null ? value : System.getProperty("gradientsync." + name))
        .filter(v -> !v.isBlank());
  }

  /**
   * How long a call waits for another rank: the setting {@code timeout}, in seconds or as ISO 8601
   * ({@code PT90S}).
   *
   * @return more than zero
   * @throws IllegalArgumentException if the setting is neither
   */
  public Duration timeout() {
    String text = get("timeout").orElse(null);
    if (text == null) {
      return DEFAULT_TIMEOUT;
    }
    Duration timeout;
    try {
      timeout =
          text.startsWith("P") ? Duration.parse(text) : Duration.ofSeconds(Long.parseLong(text));
    } catch (RuntimeException e) {
      throw new IllegalArgumentException(
          "not a time-out: gradientsync.timeout="
              + text
              + "; give seconds (90) or ISO 8601 (PT90S)",
          e);
    }
    if (timeout.isZero() || timeout.isNegative()) {
      throw new IllegalArgumentException(
          "time-out must be more than zero: gradientsync.timeout=" + text);
    }
    return timeout;
  }

  /**
   * What FLOAT32 sums and averages travel as: the setting {@code wire}.
   *
   * @return FLOAT16 or BFLOAT16, or empty if nobody set it
   * @throws IllegalArgumentException if the setting is neither {@code bfloat16} nor {@code
   *     float16}, in any case
   */
  public Optional<DataType> wire() {
    return get("wire").map(Settings::wireType);
  }

  private static DataType wireType(String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "bfloat16" -> DataType.BFLOAT16;
      case "float16" -> DataType.FLOAT16;
      default ->
          throw new IllegalArgumentException(
              "not a type that gradients can travel as: gradientsync.wire="
                  + text
                  + "; give bfloat16, float16, or nothing");
    };
  }
}
