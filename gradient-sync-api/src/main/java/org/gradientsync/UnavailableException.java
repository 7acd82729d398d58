package org.gradientsync;

/** What was asked for by name cannot work here, or nothing can; the message says why for each. */
public class UnavailableException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * An exception that says why.
   *
   * @param message what is not available, why, and what to do
   */
  public UnavailableException(String message) {
    super(message);
  }

  /**
   * An exception that says why.
   *
   * @param message what is not available, why, and what to do
   * @param cause what the layer below said
   */
  public UnavailableException(String message, Throwable cause) {
    super(message, cause);
  }
}
