package org.gradientsync;

/**
 * A rank did not join a call: it is too late, it has closed its side, or it has died. This breaks
 * the communicator: later calls throw at once, and the contents of buffers in the running call are
 * undefined.
 */
public class RankLostException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception that names the ranks.
   *
   * @param message which ranks did not join which call, and how long this rank waited
   */
  public RankLostException(String message) {
    super(message);
  }

  /**
   * Creates an exception that names the rank and has a cause.
   *
   * @param message which rank was lost in which call
   * @param cause the exception that ended that rank, or null if it is not known
   */
  public RankLostException(String message, Throwable cause) {
    super(message, cause);
  }
}
