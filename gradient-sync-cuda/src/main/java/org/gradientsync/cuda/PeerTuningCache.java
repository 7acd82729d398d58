package org.gradientsync.cuda;

import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Properties;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What was measured on this machine before: a file in the user's cache folder ({@code
 * $XDG_CACHE_HOME/gradient-sync} or {@code ~/.cache/gradient-sync}; setting {@code cache}). Only
 * rank 0 reads and writes it. Whatever is wrong with it, it is as if it were not there.
 */
final class PeerTuningCache {
  private static final Logger log = LoggerFactory.getLogger(PeerTuningCache.class);

  private static final FileAttribute<?> PRIVATE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private final Path file;
  private final String key;

  PeerTuningCache(Settings settings, String gpu, int driver, int ranks, int part) {
    file = folder(settings).resolve("peer-tuning.properties");
    key = (gpu + "." + driver + "." + ranks + "-ranks.part-" + part).replace(' ', '_');
  }

  private static Path folder(Settings settings) {
    String xdg = System.getenv("XDG_CACHE_HOME");
    return settings
        .get("cache")
        .map(Path::of)
        .orElseGet(
            () ->
                xdg != null && !xdg.isBlank()
                    ? Path.of(xdg, "gradient-sync")
                    : Path.of(System.getProperty("user.home"), ".cache", "gradient-sync"));
  }

  /** The sizes found before, or null. */
  long[] read(PeerLayout layout) {
    try {
      String[] parts = load().getProperty(key, "").trim().split(",");
      long[] sizes = {Long.parseLong(parts[0].trim()), Long.parseLong(parts[1].trim())};
      boolean sane =
          sizes[0] >= 0
              && sizes[0] <= sizes[1]
              && sizes[1] <= layout.mostBytes(PeerWay.TWO_SHOT)
              && parts.length == 2;
      return sane ? sizes : null;
    } catch (IOException | RuntimeException e) {
      log.debug("no tuning was read: file={}, cause={}", file, e.toString());
      return null;
    }
  }

  void write(long[] sizes) {
    try {
      Files.createDirectories(file.getParent(), PRIVATE);
      Properties all = known();
      all.setProperty(key, sizes[0] + "," + sizes[1]);
      Path fresh = Files.createTempFile(file.getParent(), "peer-tuning", ".new"); // private, too
      try {
        try (Writer out = Files.newBufferedWriter(fresh)) {
          all.store(out, "gradient-sync, reducer peer: largest bytes for one_shot, for two_shot");
        }
        Files.move(
            fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      } finally {
        Files.deleteIfExists(fresh);
      }
    } catch (IOException | RuntimeException e) {
      log.debug("the tuning was not kept: file={}, cause={}", file, e.toString());
    }
  }

  /** What other keys have, to be kept; nothing if the file is damaged. */
  private Properties known() throws IOException {
    try {
      return load();
    } catch (CharacterCodingException | IllegalArgumentException e) {
      return new Properties();
    }
  }

  private Properties load() throws IOException {
    Properties all = new Properties();
    if (!Files.isRegularFile(file) || !Files.getOwner(file).equals(Files.getOwner(own()))) {
      return all; // another user's file is not trusted
    }
    try (Reader in = Files.newBufferedReader(file)) {
      all.load(in);
    }
    return all;
  }

  /** A place that is certainly this user's. */
  private static Path own() {
    return Path.of("/proc/self");
  }
}
