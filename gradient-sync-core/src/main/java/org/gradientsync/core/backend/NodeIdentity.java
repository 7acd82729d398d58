package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import org.gradientsync.spi.Availability;

/** Finds out whether two processes can share memory: by the memory file system that they see. */
public final class NodeIdentity {
  /** The memory file system. */
  public static final Path FOLDER = Path.of("/dev/shm");

  private NodeIdentity() {}

  /** {@return whether this user can write to a memory file system, or the reason why not} */
  public static Availability canShareMemory() {
    return Files.isDirectory(FOLDER) && Files.isWritable(FOLDER)
        ? Availability.yes()
        : Availability.no(FOLDER + " is not there or not writable");
  }

  /**
   * Identifies the memory that this process can share. Two processes with the same text can map
   * each other's files, whatever their host names; containers with memory file systems of their own
   * have different texts.
   *
   * @param host this host's name, which counts where this user has no memory file system
   * @return an empty text if the machine cannot be distinguished from others
   */
  public static String of(String host) {
    String boot = TemporaryFiles.boot();
    return boot.isEmpty() ? "" : boot + ' ' + (canShareMemory().usable() ? mount() : host);
  }

  /** The number of the memory file system, unique until the machine is booted again. */
  private static String mount() {
    try {
      return String.valueOf(Files.readAttributes(FOLDER, BasicFileAttributes.class).fileKey());
    } catch (IOException e) {
      return "";
    }
  }
}
