package org.gradientsync;

/**
 * A call of this library failed.
 *
 * <p>This class and its subclasses report failures between ranks and in backends. For wrong
 * arguments the library throws Java's own exceptions ({@link IllegalArgumentException}, {@link
 * IllegalStateException}, {@link IndexOutOfBoundsException}, {@link NullPointerException}) before
 * it sends anything to another rank.
 */
public class GradientSyncException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with a message.
   *
   * @param message what failed, on which rank, and what to do
   */
  public GradientSyncException(String message) {
    super(message);
  }

  /**
   * Creates an exception with a message and a cause.
   *
   * @param message what failed, on which rank, and what to do
   * @param cause the exception of the layer below
   */
  public GradientSyncException(String message, Throwable cause) {
    super(message, cause);
  }
}
