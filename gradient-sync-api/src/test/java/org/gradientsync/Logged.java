package org.gradientsync;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What goes to the standard error stream, and with it to the log, until this is closed. */
public final class Logged implements AutoCloseable {
  private final PrintStream before = System.err;
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  /** Begins. */
  public Logged() {
    System.setErr(new PrintStream(bytes, true, StandardCharsets.UTF_8));
  }

  /**
   * What has been written so far.
   *
   * @return text
   */
  public String text() {
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Override
  public void close() {
    System.setErr(before);
  }

  /**
   * Runs something.
   *
   * @param work what may log
   * @return the lines that were written meanwhile
   */
  public static List<String> lines(Runnable work) {
    try (Logged logged = new Logged()) {
      work.run();
      return logged.text().lines().toList();
    }
  }
}
