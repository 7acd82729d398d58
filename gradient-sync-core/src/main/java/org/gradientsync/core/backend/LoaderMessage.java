package org.gradientsync.core.backend;

/** Why the system could not load a library. */
public final class LoaderMessage {
  private LoaderMessage() {}

  /**
   * {@return the loader's own line, without the lines that JNA adds around it}
   *
   * @param e what loading the library threw
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
