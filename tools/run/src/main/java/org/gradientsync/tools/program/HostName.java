package org.gradientsync.tools.program;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The name of this machine according to its kernel, because the network may not know it. */
public final class HostName {
  private static final Path KERNEL = Path.of("/proc/sys/kernel/hostname");

  private HostName() {}

  /** Returns the name, or "localhost" if it is unknown. */
  public static String get() {
    try {
      return Files.readString(KERNEL).strip();
    } catch (IOException | RuntimeException e) {
      return "localhost";
    }
  }
}
