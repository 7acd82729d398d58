package org.gradientsync;

/**
 * Something that this library was asked for did not happen.
 *
 * <p>Wrong arguments are answered with Java's own exceptions ({@link IllegalArgumentException},
 * {@link IllegalStateException}, {@link IndexOutOfBoundsException}, {@link NullPointerException})
 * before anything is sent to another rank; this class and its subclasses tell of what only shows
 * between ranks or in a backend.
 */
public class GradientSyncException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * An exception with a message.
   *
   * @param message what failed, on which rank, and what to do
   */
  public GradientSyncException(String message) {
    super(message);
  }

  /**
   * An exception with a message and a cause.
   *
   * @param message what failed, on which rank, and what to do
   * @param cause what the layer below said
   */
  public GradientSyncException(String message, Throwable cause) {
    super(message, cause);
  }
}
