package org.gradientsync.examples.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** Temporary folders, which do not stay behind where the program is ended before its time. */
final class Scratch {
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

  private Scratch() {}

  /** A new one, readable by this user alone. */
  static Path open() throws IOException {
    Path folder = Files.createTempDirectory("gradient-sync-doctor-");
    OPEN.add(folder);
    return folder;
  }

  /** Deletes one with all that is in it; null is none. */
  static void close(Path folder) {
    if (folder == null) {
      return;
    }
    OPEN.remove(folder);
    try (Stream<Path> files = Files.walk(folder)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException | RuntimeException e) {
      folder.toFile().deleteOnExit(); // a process that was killed may still have been writing
    }
  }

  static void closeAll() {
    OPEN.forEach(Scratch::close);
  }
}
