package org.gradientsync;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Captures the standard error stream, which includes the log, until it is closed. */
public final class Logged implements AutoCloseable {
  private final PrintStream before = System.err;
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  /** Starts to capture. */
  public Logged() {
    System.setErr(new PrintStream(bytes, true, StandardCharsets.UTF_8));
  }

  /**
   * The text that has been written so far.
   *
   * @return the text
   */
  public String text() {
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Override
  public void close() {
    System.setErr(before);
  }

  /**
   * Captures the lines that an action writes.
   *
   * @param work the action
   * @return the lines
   */
  public static List<String> lines(Runnable work) {
    try (Logged logged = new Logged()) {
      work.run();
      return logged.text().lines().toList();
    }
  }
}
