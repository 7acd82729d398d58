package org.gradientsync;

/**
 * The ranks' calls differ. Every rank throws this exception with the same table of the ranks'
 * calls. No buffer is changed, and the communicator remains usable.
 *
 * <p>Ranks that deadlock throw this exception, too: for example, if one rank sends and the other is
 * in a barrier. A deadlock breaks the communicator, because each rank is in the middle of a call.
 */
public class MismatchedCallException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with the table of calls.
   *
   * @param message each rank's call
   */
  public MismatchedCallException(String message) {
    super(message);
  }
}
