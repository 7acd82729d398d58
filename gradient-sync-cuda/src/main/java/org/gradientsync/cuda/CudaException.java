package org.gradientsync.cuda;

import org.gradientsync.GradientSyncException;

/**
 * A call of the CUDA driver failed. The message gives the call, the error's name and code, and what
 * was asked.
 */
public class CudaException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  private final int code;

  /**
   * An exception.
   *
   * @param message what failed
   * @param code the driver's error code
   */
  public CudaException(String message, int code) {
    super(message);
    this.code = code;
  }

  /**
   * The driver's error code.
   *
   * @return a CUresult, not 0
   */
  public int code() {
    return code;
  }
}
