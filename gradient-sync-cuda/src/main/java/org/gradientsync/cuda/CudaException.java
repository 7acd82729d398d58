package org.gradientsync.cuda;

import org.gradientsync.GradientSyncException;

/**
 * A call of the CUDA driver, of cuBLAS or of NVRTC failed. The message gives the call, the error's
 * name and code, and what was asked.
 */
public class CudaException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /** The driver's error code. */
  private final int code;

  /**
   * An exception.
   *
   * @param message what failed
   * @param code the error code
   */
  public CudaException(String message, int code) {
    super(message);
    this.code = code;
  }

  /**
   * The error code.
   *
   * @return not 0; a CUresult, or for cuBLAS and NVRTC a number of theirs
   */
  public int code() {
    return code;
  }
}
