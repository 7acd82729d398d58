package org.gradientsync.tools.run;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.UnaryOperator;

/** Copies whole lines of a process to an output of this one, where lines of others are, too. */
final class LineCopy extends Thread {
  private static final int LONGEST_LINE = 1 << 20;

  private final InputStream in;
  private final PrintStream to;
  private final UnaryOperator<String> shown;

  private LineCopy(InputStream in, PrintStream to, UnaryOperator<String> shown) {
    super("output");
    setDaemon(true);
    this.in = in;
    this.to = to;
    this.shown = shown;
    start();
  }

  /**
   * Starts copying both outputs of a process.
   *
   * @param shown returns what to print for a line, or null
   */
  static List<LineCopy> of(Process process, UnaryOperator<String> shown) {
    return List.of(
        new LineCopy(process.getInputStream(), System.out, shown),
        new LineCopy(process.getErrorStream(), System.err, shown));
  }

  /** The bytes of any charset pass through unchanged. */
  @Override
  public void run() {
    PrintStream out = new PrintStream(to, false, StandardCharsets.ISO_8859_1);
    try (Reader lines =
        new BufferedReader(new InputStreamReader(in, StandardCharsets.ISO_8859_1))) {
      for (String line = readLine(lines); line != null; line = readLine(lines)) {
        String text = shown.apply(line);
        if (text != null) {
          synchronized (to) {
            out.print(text + "\n");
            out.flush();
          }
        }
      }
    } catch (IOException e) {
      out.flush(); // the process has been ended
    }
  }

  /**
   * Reads a line, or the next piece of one that is too long to keep; the last piece may be empty.
   * Returns null at the end.
   */
  static String readLine(Reader in) throws IOException {
    StringBuilder line = new StringBuilder();
    for (int read = in.read(); read >= 0; read = in.read()) {
      if (read != '\n') {
        line.append((char) read);
      }
      if (read == '\n' || line.length() == LONGEST_LINE) {
        return line.toString();
      }
    }
    return line.length() == 0 ? null : line.toString();
  }
}
