package org.gradientsync;

/**
 * A rank did not join a call: it is too late, it has closed its side, or it has died; or this
 * rank's thread was interrupted while it waited. This breaks the sync or the communicator: later
 * calls throw at once, and the contents of buffers in the running call are undefined.
 */
public class RankLostException extends GradientSyncException {
  /**
   * The exit code of a process that ends because another rank has died or is too late, {@code
   * EX_TEMPFAIL} of sysexits.h: the same job may succeed when it is started again.
   */
  public static final int EXIT_CODE = 75;

  private static final int FAILURE = 1;
  private static final long serialVersionUID = 1L;

  /** Whether a rank's program has ended it, or its call failed by itself. */
  private final boolean left;

  /**
   * Creates an exception that names the ranks.
   *
   * @param message which ranks did not join which call, and how long this rank waited
   */
  public RankLostException(String message) {
    this(message, null);
  }

  /**
   * Creates an exception that names the rank and has a cause.
   *
   * @param message which rank was lost in which call
   * @param cause the exception that ended that rank, or null if it is not known
   */
  public RankLostException(String message, Throwable cause) {
    this(message, cause, false);
  }

  /**
   * Creates an exception for a rank that may have left or failed by itself.
   *
   * @param message which rank was lost in which call
   * @param cause the exception that ended that rank, or null if it is not known
   * @param left whether its program has ended it, or its call failed by itself, with too little
   *     memory for example: then the same job would end the same way again
   */
  public RankLostException(String message, Throwable cause, boolean left) {
    super(message, cause);
    this.left = left;
  }

  /**
   * {@return the code with which this process should end: {@link #EXIT_CODE}, or 1 if a rank's
   * program has ended it, or its call failed by itself} A rank under {@code mpirun} does if nobody
   * catches the exception.
   */
  public int exitCode() {
    return left ? FAILURE : EXIT_CODE;
  }
}
