package org.gradientsync;

/**
 * A call of a device's driver or of one of its libraries failed. On NVIDIA GPUs: the CUDA driver,
 * cuBLAS, NVRTC or NCCL. The message gives the call, the error's name and code, and the arguments.
 */
public class DeviceException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /** The error code of the driver or library; not 0. */
  private final int code;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param code the error code
   */
  public DeviceException(String message, int code) {
    super(message);
    this.code = code;
  }

  /**
   * {@return the error code of the driver or library, not 0; for the CUDA driver a CUresult, for
   * cuBLAS, NVRTC and NCCL a code of theirs}
   */
  public int code() {
    return code;
  }
}
