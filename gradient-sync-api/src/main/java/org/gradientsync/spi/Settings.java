package org.gradientsync.spi;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.gradientsync.DataType;
import org.gradientsync.SumOrder;

/**
 * What the user asked for: the builder's values first, then system properties named {@code
 * gradientsync.*}. Times are in seconds or as ISO 8601 ({@code PT90S}). A method throws an {@link
 * IllegalArgumentException} if its setting is not what its documentation says.
 */
public final class Settings {
  /** The default of {@link Timeouts#timeout()}. */
  public static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(5);

  /** The default of {@link Timeouts#late()}. */
  public static final Duration DEFAULT_LATE = Duration.ofSeconds(10);

  private static final Duration DEFAULT_SHUTDOWN_GRACE = Duration.ofSeconds(30);
  private static final Duration DEFAULT_ELASTIC_WAIT = Duration.ofSeconds(60);
  private static final Duration DEFAULT_ELASTIC_SILENCE = Duration.ofSeconds(30);

  /** Those that this module reads; backends say {@link ReducerProvider#settings what else}. */
  public static final Set<String> NAMES =
      Set.of(
          "dev.late",
          "dev.launcher",
          "dev.rendezvous",
          "device",
          "elastic",
          "elastic.min",
          "elastic.silence",
          "elastic.wait",
          "finite",
          "order",
          "reducer",
          "reports",
          "shutdown.grace",
          "stop.on.signal",
          "timeout",
          "wire");

  private static final String PREFIX = "gradientsync.";

  private final Map<String, String> chosen;

  /**
   * Settings made by a builder.
   *
   * @param chosen values by name without {@code gradientsync.}, which win over system properties
   */
  public Settings(Map<String, String> chosen) {
    this.chosen = Map.copyOf(chosen);
  }

  /**
   * {@return these settings with others in their place}
   *
   * @param others values by name without the prefix; an empty one unsets what the builder or a
   *     system property has set
   */
  public Settings with(Map<String, String> others) {
    Map<String, String> all = new HashMap<>(chosen);
    all.putAll(others);
    return new Settings(all);
  }

  /**
   * {@return the value of one setting, or empty if nobody set it}
   *
   * @param name the name without the prefix, for example {@code reducer}
   */
  public Optional<String> get(String name) {
    String value = chosen.get(name);
    return Optional.ofNullable(value != null ? value : System.getProperty(PREFIX + name))
        .filter(v -> !v.isBlank());
  }

  /**
   * {@return the kind of device, the setting {@code device}, where {@code gpu} means {@code cuda},
   * and {@code cpu} means {@code host}: a kind in lower case, or empty if nobody set it}
   */
  public Optional<String> device() {
    return get("device")
        .map(text -> text.toLowerCase(Locale.ROOT))
        .map(text -> text.equals("gpu") ? "cuda" : text.equals("cpu") ? "host" : text);
  }

  /**
   * {@return which settings somebody has set, whether anybody reads them or not, without the
   * prefix, sorted}
   */
  public Set<String> names() {
    Set<String> names = new TreeSet<>(chosen.keySet());
    for (String property : System.getProperties().stringPropertyNames()) {
      if (property.startsWith(PREFIX)) {
        names.add(property.substring(PREFIX.length()));
      }
    }
    return names;
  }

  /**
   * {@return how long a call waits, and what happens then: the settings {@code timeout} (more than
   * zero, 5 minutes if not set), {@code dev.late} (when a call says in the log for whom it waits;
   * more than zero, 10 seconds if not set), and {@code reports} (the folder in which a time-out
   * leaves a folder of reports; the working folder if not set, none if it is {@code off})}
   */
  public Timeouts timeouts() {
    String reports = get("reports").orElse(".");
    Optional<Path> folder;
    try {
      folder = reports.equalsIgnoreCase("off") ? Optional.empty() : Optional.of(Path.of(reports));
    } catch (InvalidPathException e) {
      throw new IllegalArgumentException(
          "not a folder: gradientsync.reports=" + reports + "; give a path, or off", e);
    }
    return new Timeouts(
        duration("timeout", DEFAULT_TIMEOUT), duration("dev.late", DEFAULT_LATE), folder);
  }

  /**
   * {@return how long calls go on after a signal (SIGTERM, SIGINT or SIGHUP) while the program's
   * own shutdown hooks run: the setting {@code shutdown.grace}, zero or more; 30 seconds if nobody
   * set it}
   */
  public Duration shutdownGrace() {
    return get("shutdown.grace").filter(text -> text.matches("0+|PT0S")).isPresent()
        ? Duration.ZERO
        : duration("shutdown.grace", DEFAULT_SHUTDOWN_GRACE);
  }

  /**
   * {@return whether gradients have to be finite: the setting {@code finite}, {@code true} or
   * {@code false}; false if nobody set it; see {@link
   * org.gradientsync.GradientSync.Builder#requireFinite}}
   */
  public boolean finite() {
    return isYes("finite", "true", "false", false);
  }

  /**
   * {@return whether a signal asks the ranks to stop: the setting {@code stop.on.signal}, {@code
   * true} or {@code false}; false if nobody set it}
   */
  public boolean stopOnSignal() {
    return isYes("stop.on.signal", "true", "false", false);
  }

  /**
   * {@return whether a rank that fails ends alone: the setting {@code elastic}, {@code true} or
   * {@code false}; false if nobody set it}
   */
  public boolean elastic() {
    return isYes("elastic", "true", "false", false);
  }

  /**
   * {@return with how many ranks an elastic training goes on: the setting {@code elastic.min}, 1 or
   * more; 1 if nobody set it}
   */
  public int elasticMin() {
    String text = get("elastic.min").orElse("1");
    if (!text.matches("[1-9]\\d{0,8}")) {
      throw new IllegalArgumentException(
          "not a number of ranks: gradientsync.elastic.min=" + text + "; give 1 or more");
    }
    return Integer.parseInt(text);
  }

  /**
   * {@return how long fewer ranks wait for others to join, and how long a process waits that wants
   * to: the setting {@code elastic.wait}, more than zero; 60 seconds if nobody set it}
   */
  public Duration elasticWait() {
    return duration("elastic.wait", DEFAULT_ELASTIC_WAIT);
  }

  /**
   * {@return how long another rank of an elastic job over TCP may send nothing, not even that it
   * lives, before it counts as lost: the setting {@code elastic.silence}, one second or more; 30
   * seconds if nobody set it}
   */
  public Duration elasticSilence() {
    Duration silence = duration("elastic.silence", DEFAULT_ELASTIC_SILENCE);
    if (silence.toSeconds() < 1) {
      throw new IllegalArgumentException(
          "less than a second: gradientsync.elastic.silence=" + silence + "; give 1 or more");
    }
    return silence;
  }

  /**
   * {@return whether ranks of one node meet by messages, too: the setting {@code dev.rendezvous},
   * {@code messages} or not set}
   */
  public boolean meetsByMessages() {
    return isOnly("dev.rendezvous", "messages", "unknown value");
  }

  /**
   * {@return whether this process is a job of one rank, whatever launchers say: the setting {@code
   * dev.launcher}, {@code none} or not set}
   */
  public boolean isAlone() {
    return isOnly("dev.launcher", "none", "no such launcher");
  }

  /** Whether a setting has its only value; throws if it has another. */
  private boolean isOnly(String name, String value, String otherwise) {
    String text = get(name).orElse(null);
    if (text != null && !text.equals(value)) {
      throw new IllegalArgumentException(
          "%s: gradientsync.%s=%s; give %s, or nothing".formatted(otherwise, name, text, value));
    }
    return text != null;
  }

  /**
   * {@return whether a setting is on, which is {@code on} or {@code off}, in any case}
   *
   * @param name without its prefix
   * @param otherwise what it is if nobody set it
   */
  public boolean isOn(String name, boolean otherwise) {
    return isYes(name, "on", "off", otherwise);
  }

  private boolean isYes(String name, String yes, String no, boolean otherwise) {
    String text = get(name).orElse(otherwise ? yes : no).toLowerCase(Locale.ROOT);
    if (!text.equals(yes) && !text.equals(no)) {
      throw new IllegalArgumentException(
          "neither " + yes + " nor " + no + ": gradientsync." + name + "=" + text);
    }
    return text.equals(yes);
  }

  private Duration duration(String name, Duration otherwise) {
    String text = get(name).orElse(null);
    if (text == null) {
      return otherwise;
    }
    String what = name.equals("timeout") ? "time-out" : name;
    Duration duration;
    try {
      duration =
          text.startsWith("P") ? Duration.parse(text) : Duration.ofSeconds(Long.parseLong(text));
    } catch (RuntimeException e) {
      throw new IllegalArgumentException(
          "not a %s: gradientsync.%s=%s; give seconds (90) or ISO 8601 (PT90S)"
              .formatted(name.equals("timeout") ? "time-out" : "time", name, text),
          e);
    }
    if (duration.isZero() || duration.isNegative()) {
      String least =
          what.equals("shutdown.grace") ? " must not be negative" : " must be more than zero";
      throw new IllegalArgumentException(what + least + ": gradientsync." + name + "=" + text);
    }
    return duration;
  }

  /**
   * {@return the order in which sums are added: the setting {@code order}, {@code ranks} or {@code
   * any}, in any case; RANKS if nobody set it}
   */
  public SumOrder order() {
    String text = get("order").orElse("ranks");
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "ranks" -> SumOrder.RANKS;
      case "any" -> SumOrder.ANY;
      default ->
          throw new IllegalArgumentException(
              "not an order of sums: gradientsync.order=" + text + "; give ranks, any, or nothing");
    };
  }

  /**
   * {@return what FLOAT32 sums and averages travel as: the setting {@code wire}, {@code bfloat16}
   * or {@code float16}, in any case; empty if nobody set it}
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
