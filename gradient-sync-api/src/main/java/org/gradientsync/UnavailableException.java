package org.gradientsync;

/**
 * The requested launcher, device, reducer or setting does not work here, or no device or reducer
 * does. The message gives the reason for each.
 */
public class UnavailableException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with a message.
   *
   * @param message what is not available, why, and what to do
   */
  public UnavailableException(String message) {
    super(message);
  }

  /**
   * Creates an exception with a message and a cause.
   *
   * @param message what is not available, why, and what to do
   * @param cause the exception of the layer below
   */
  public UnavailableException(String message, Throwable cause) {
    super(message, cause);
  }
}
