package org.gradientsync;

/**
 * A rank did not come: it is too late, it has closed its side, or it has died. The communicator is
 * broken from then on: its later calls throw at once, and what buffers in a running call hold is
 * undefined.
 */
public class RankLostException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * An exception that names the ranks.
   *
   * @param message which ranks did not join which call, and how long this rank waited
   */
  public RankLostException(String message) {
    super(message);
  }

  /**
   * An exception that names the rank and why it was lost.
   *
   * @param message which rank was lost in which call
   * @param cause what ended that rank, where it is known
   */
  public RankLostException(String message, Throwable cause) {
    super(message, cause);
  }
}
