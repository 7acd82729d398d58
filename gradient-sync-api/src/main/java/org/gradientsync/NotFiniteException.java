package org.gradientsync;

/**
 * A gradient contains a NaN or an infinity, and {@link GradientSync.Builder#requireFinite} is on.
 * The sync remains usable.
 */
public class NotFiniteException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception that names ranks and buffers.
   *
   * @param message the rank, the buffer and the index of the value
   */
  public NotFiniteException(String message) {
    super(message);
  }
}
