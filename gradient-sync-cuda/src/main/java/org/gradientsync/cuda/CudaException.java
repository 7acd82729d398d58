package org.gradientsync.cuda;

import org.gradientsync.GradientSyncException;

/**
 * A call of the CUDA driver, cuBLAS or NVRTC failed. The message gives the call, the error's name
 * and code, and the call's important arguments.
 */
public class CudaException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  private final int code;

  /**
   * Creates an exception.
   *
   * @param message the message
   * @param code the error code
   */
  public CudaException(String message, int code) {
    super(message);
    this.code = code;
  }

  /**
   * The error code.
   *
   * @return a CUresult, cublasStatus or nvrtcResult; not 0
   */
  public int code() {
    return code;
  }
}
