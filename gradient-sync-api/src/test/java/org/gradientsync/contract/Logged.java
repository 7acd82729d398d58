package org.gradientsync.contract;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** What goes to the standard error stream, and with it to the log. */
public final class Logged {
  private Logged() {}

  /**
   * Runs something.
   *
   * @param work what may log
   * @return the lines that were written meanwhile
   */
  public static List<String> lines(Runnable work) {
    PrintStream before = System.err;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setErr(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      work.run();
    } finally {
      System.setErr(before);
    }
    return bytes.toString(StandardCharsets.UTF_8).lines().toList();
  }
}
