package org.gradientsync.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The name of this machine, as it calls itself: no network is asked, which may not know it. */
public final class HostName {
  private static final Path KERNEL = Path.of("/proc/sys/kernel/hostname");

  private HostName() {}

  /**
   * Asks the kernel.
   *
   * @return the name, or "localhost" where it cannot be found out
   */
  public static String get() {
    try {
      return Files.readString(KERNEL).strip();
    } catch (IOException | RuntimeException e) {
      return "localhost";
    }
  }
}
