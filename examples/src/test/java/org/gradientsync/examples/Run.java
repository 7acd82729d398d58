package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.gradientsync.tools.program.Program;

/** The result of a program, run in this JVM or as a process. */
public record Run(int code, String out, String err) {
  public static Run of(Program program, String... args) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    int code =
        Program.commandLine(program)
            .setOut(new PrintWriter(out, true))
            .setErr(new PrintWriter(err, true))
            .execute(args);
    return new Run(code, out.toString(), err.toString());
  }

  public Run exits(int expected) {
    assertEquals(expected, code, this::toString);
    return this;
  }

  public Run prints(String... lines) {
    List<String> printed = out.lines().map(String::strip).toList();
    for (String line : lines) {
      assertTrue(printed.contains(line), () -> "no line \"" + line + "\" in " + this);
    }
    return this;
  }

  /** Requires a line that matches the regular expression. */
  public Run printsLike(String line) {
    assertTrue(
        out.lines().anyMatch(printed -> printed.matches(line)),
        () -> "no line like \"" + line + "\" in " + this);
    return this;
  }

  public Run complains(String part) {
    assertTrue(err.contains(part), () -> "no \"" + part + "\" in " + this);
    return this;
  }

  /** Requires exactly one line of error output, and no other output. */
  public Run complainsInOneLine(String part) {
    assertEquals("", out);
    assertEquals(1, err.lines().count(), this::toString);
    return complains(part);
  }

  /** Returns the number after the last line with this start. */
  public double number(String start) {
    return out.lines()
        .map(String::strip)
        .filter(line -> line.startsWith(start))
        .map(line -> line.substring(start.length()).strip().split(" ")[0])
        .mapToDouble(Double::parseDouble)
        .reduce((first, second) -> second)
        .orElseThrow(() -> new AssertionError("no line \"" + start + "\" in " + this));
  }

  @Override
  public String toString() {
    return "exit code " + code + "\n--- out\n" + out + "--- err\n" + err + "---";
  }
}
