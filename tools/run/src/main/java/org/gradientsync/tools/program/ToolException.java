package org.gradientsync.tools.program;

import java.util.Locale;

/** Something that the user has to change. The message is one sentence, and ends the command. */
public final class ToolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int exitCode;

  private ToolException(String message, int exitCode) {
    super(message);
    this.exitCode = exitCode;
  }

  /**
   * Creates an exception for a command line that asks for something that cannot be.
   *
   * @param format what was found, and what to do; without a full stop
   * @param values the format's arguments
   */
  public static ToolException badUse(String format, Object... values) {
    return new ToolException(String.format(Locale.ROOT, format, values), Program.BAD_USE);
  }

  /**
   * Creates an exception for a job that cannot run on this machine.
   *
   * @param format what was found, and what to do; without a full stop
   * @param values the format's arguments
   */
  public static ToolException cannotRun(String format, Object... values) {
    return new ToolException(String.format(Locale.ROOT, format, values), Program.CANNOT_RUN);
  }

  /** Returns the exit code of the command. */
  public int exitCode() {
    return exitCode;
  }
}
