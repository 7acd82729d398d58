package org.gradientsync.cuda.internal.peer;

import java.io.IOException;
import java.io.Writer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Properties;
import org.gradientsync.core.host.OwnFiles;
import org.gradientsync.core.host.TemporaryFiles;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Earlier measurements on this machine, in a file in the user's cache folder ({@code
 * $XDG_CACHE_HOME/gradient-sync} or {@code ~/.cache/gradient-sync}; switch {@code dev.cache}). Only
 * rank 0 reads and writes it. Ignores a damaged file, and whatever another user could have written:
 * a file or a folder that does not belong to this user, that others can write to, or that is a
 * symbolic link.
 */
final class PeerTuningCache {
  private static final Logger log = LoggerFactory.getLogger(PeerTuningCache.class);

  private static final FileAttribute<?> PRIVATE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  /** Far more than the entries of all GPUs that a user has. */
  private static final int MOST_BYTES = 1 << 20;

  private final OwnFiles own;
  private final Path file;
  private final String key;

  PeerTuningCache(Settings settings, String gpu, int driver, int ranks, int place) {
    this(settings, gpu, driver, ranks, place, OwnFiles.ofThisUser());
  }

  /** For tests, which pass the files of another user. */
  PeerTuningCache(Settings settings, String gpu, int driver, int ranks, int place, OwnFiles own) {
    this.own = own;
    file = folder(settings).resolve("peer-tuning.properties");
    key = (gpu + "." + driver + "." + ranks + "-ranks.share-" + place).replace(' ', '_');
  }

  private static Path folder(Settings settings) {
    String xdg = System.getenv("XDG_CACHE_HOME");
    return settings
        .get("dev.cache")
        .map(Path::of)
        .orElseGet(
            () ->
                xdg != null && !xdg.isBlank()
                    ? Path.of(xdg, "gradient-sync")
                    : Path.of(System.getProperty("user.home"), ".cache", "gradient-sync"));
  }

  /** The measured sizes, or null if there are none. */
  long[] read(PeerLayout layout) {
    try {
      String[] parts = load().getProperty(key, "").trim().split(",");
      long[] sizes = {Long.parseLong(parts[0].trim()), Long.parseLong(parts[1].trim())};
      boolean sane =
          sizes[0] >= 0
              && sizes[0] <= sizes[1]
              && sizes[1] <= layout.mostBytes(PeerAlgorithm.TWO_SHOT)
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
      own.requireFolder(file.getParent());
      Properties all = known();
      all.setProperty(key, sizes[0] + "," + sizes[1]);
      Path fresh = new TemporaryFiles(file.getParent(), "tuning").createFile(".new");
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

  /** The existing entries, to keep those of other keys; none if the file is ignored. */
  private Properties known() {
    try {
      return load();
    } catch (IOException | RuntimeException e) {
      return new Properties();
    }
  }

  private Properties load() throws IOException {
    Properties all = new Properties();
    if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
      return all;
    }
    try {
      own.requireFolder(file.getParent());
      try (FileChannel in = own.open(file, MOST_BYTES, StandardOpenOption.READ)) {
        all.load(Channels.newReader(in, StandardCharsets.UTF_8.newDecoder(), -1));
      }
    } catch (IOException | RuntimeException e) {
      log.info("the tuning that was kept is ignored: file={}, cause={}", file, e.toString());
      throw e;
    }
    return all;
  }
}
