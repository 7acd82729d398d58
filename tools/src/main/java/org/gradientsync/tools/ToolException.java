package org.gradientsync.tools;

/** Something that the user has to change. The message is one sentence, and ends the command. */
public final class ToolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Whether the command line is wrong, or this machine. */
  public enum Kind {
    /** The command line asks for something that cannot be. */
    BAD_USE(2),
    /** The job cannot run on this machine. */
    CANNOT_RUN(3);

    private final int exitCode;

    Kind(int exitCode) {
      this.exitCode = exitCode;
    }
  }

  private final Kind kind;

  /**
   * Creates an exception.
   *
   * @param message what was found, and what to do; without a full stop
   */
  public ToolException(Kind kind, String message) {
    super(message);
    this.kind = kind;
  }

  /** Returns the exit code of the command. */
  public int exitCode() {
    return kind.exitCode;
  }
}
