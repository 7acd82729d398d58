package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Optional;

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
    if (folder == null) {
      return Optional.empty();
    }
    try {
      Path parent = folder.getParent();
      if (!Files.isDirectory(parent) || !Files.isWritable(parent)) {
        return Optional.empty();
      }
      if (!Files.isDirectory(folder)) {
        try {
          Files.createDirectory(
              folder,
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        } catch (FileAlreadyExistsException e) {
          return in(folder); // another rank was faster
        }
      }
      Path own = Files.createTempFile(folder, "owner", "");
      boolean ours = Files.getOwner(own).equals(Files.getOwner(folder));
      Files.delete(own);
      return ours ? Optional.of(new Node(folder)) : Optional.empty();
    } catch (IOException | RuntimeException e) {
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
