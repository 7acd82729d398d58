package org.gradientsync.core.backend;

/** Why the system could not load a library. */
public final class LoaderMessage {
  private LoaderMessage() {}

  /**
   * What the system's loader said: JNA puts a line before it, and more behind.
   *
   * @param e what loading the library threw
   * @return one line
   */
  public static String reason(UnsatisfiedLinkError e) {
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    return message
        .lines()
        .filter(line -> !line.startsWith("Unable to load library"))
        .findFirst()
        .orElse(message)
        .strip();
  }
}
