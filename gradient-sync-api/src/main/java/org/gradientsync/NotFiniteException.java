package org.gradientsync;

/**
 * A gradient holds a NaN or an infinity, where {@link GradientSync.Builder#requireFinite} asks for
 * finite ones. The sync can be used again.
 */
public class NotFiniteException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * An exception that names ranks and buffers.
   *
   * @param message which rank's gradient it was, and where in it
   */
  public NotFiniteException(String message) {
    super(message);
  }
}
