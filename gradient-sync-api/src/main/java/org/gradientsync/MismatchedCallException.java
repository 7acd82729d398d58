package org.gradientsync;

/**
 * The ranks did not ask for the same thing. Every rank gets this exception with the same table of
 * who asked for what; no buffer was changed, and the communicator can be used again.
 *
 * <p>Also if ranks wait for each other, so that none can go on: one sends, say, and the other is in
 * a barrier. That breaks the communicator, since each rank is in the middle of a call.
 */
public class MismatchedCallException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * An exception with the table of calls.
   *
   * @param message which rank asked for what
   */
  public MismatchedCallException(String message) {
    super(message);
  }
}
