package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Optional;
import org.gradientsync.core.backend.OwnFiles;

/** Texts that the ranks of one node exchange through a folder, for when MPI does not work. */
final class Node {
  private static final Duration PAUSE = Duration.ofMillis(20);

  private final Path folder;

  private Node(Path folder) {
    this.folder = folder;
  }

  /**
   * Opens the folder of this node's ranks.
   *
   * @param folder the same folder for all ranks; created if it does not exist
   * @return empty if there is no such folder, or another user owns it
   */
  static Optional<Node> in(Path folder) {
    if (folder == null || !Files.isWritable(folder.getParent())) {
      return Optional.empty();
    }
    try {
      Files.createDirectories(folder, OwnFiles.mode(folder.getParent(), "rwx------"));
      OwnFiles.ofThisUser().requireFolder(folder);
      return Optional.of(new Node(folder));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** Writes a text atomically. */
  void put(String name, String text) {
    try {
      Path file = Files.createTempFile(folder, "part", "");
      Files.writeString(file, text);
      Files.move(file, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      // A reader that waits for it gives up in time, and reports that it is missing.
    }
  }

  /** Waits for a text. */
  Optional<String> get(String name, Duration limit) {
    long start = System.nanoTime();
    Path file = folder.resolve(name);
    while (true) {
      if (Files.exists(file)) {
        try {
          return Optional.of(Files.readString(file));
        } catch (IOException e) {
          return Optional.empty();
        }
      }
      if (System.nanoTime() - start >= limit.toNanos() || Thread.currentThread().isInterrupted()) {
        return Optional.empty();
      }
      Clock.sleep(PAUSE);
    }
  }
}
