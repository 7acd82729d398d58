package org.gradientsync.core.selection;

import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Warns of settings that no launcher and no provider reads, which are often misspelled. */
public final class UnknownSettings {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final String PREFIX = "gradientsync.";
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet(); // once in each process

  private UnknownSettings() {}

  static void warn(Settings settings, int rank) {
    Set<String> known = new TreeSet<>(Settings.NAMES);
    Providers.of(Launcher.class).forEach(l -> known.addAll(l.settings()));
    Providers.of(DeviceProvider.class).forEach(p -> known.addAll(p.settings()));
    Providers.of(ReducerProvider.class).forEach(p -> known.addAll(p.settings()));
    for (String name : settings.names()) {
      if (!known.contains(name)) {
        warnOnce(PREFIX + name, settings.get(name).orElse(""), rank, known);
      }
    }
    for (String property : System.getProperties().stringPropertyNames()) {
      String letters = letters(property);
      if (!property.startsWith(PREFIX)
          && (letters.startsWith("gradientsync") || letters.startsWith("orggradientsync"))) {
        warnOnce(property, System.getProperty(property), rank, known);
      }
    }
    Set<String> variables = new TreeSet<>();
    known.forEach(name -> variables.add(letters(PREFIX + name)));
    System.getenv()
        .forEach(
            (variable, value) -> {
              if (variables.contains(letters(variable))) {
                warnOnce("environment variable " + variable, value, rank, known);
              }
            });
  }

  /** Reduces a name to its letters in lower case, to recognize other spellings. */
  private static String letters(String name) {
    return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z]", "");
  }

  private static void warnOnce(String name, String value, int rank, Set<String> known) {
    if (WARNED.add(name)) {
      log.warn(
          "no module here reads this setting: {}={}, rank={}; known, as system properties that begin"
              + " with {} or with the builder: {}",
          name,
          name.contains("secret") ? "(secret)" : value,
          rank,
          PREFIX,
          String.join(", ", known));
    }
  }
}
