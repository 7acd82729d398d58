package org.gradientsync;

import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells of settings that nobody reads, which are mistyped more often than not. */
final class UnknownSettings {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final Set<String> TOLD = ConcurrentHashMap.newKeySet(); // once in each process

  private UnknownSettings() {}

  static void warn(Settings settings, int rank) {
    Set<String> known = new TreeSet<>(Settings.NAMES);
    ServiceLoader.load(Launcher.class).forEach(p -> known.addAll(p.settings()));
    ServiceLoader.load(DeviceProvider.class).forEach(p -> known.addAll(p.settings()));
    ServiceLoader.load(ReducerProvider.class).forEach(p -> known.addAll(p.settings()));
    for (String name : settings.names()) {
      if (!known.contains(name) && TOLD.add(name)) {
        log.warn(
            "no module here reads this setting: gradientsync.{}={}, rank={}; known: {}",
            name,
            settings.get(name).orElse(""),
            rank,
            String.join(", ", known));
      }
    }
  }
}
