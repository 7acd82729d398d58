package org.gradientsync.cuda.internal.nccl;

import org.gradientsync.DeviceException;

/** NCCL's result codes. */
final class NcclResult {
  static final int SUCCESS = 0;

  /** Not a failure: the work of another thread of NCCL has not ended. */
  static final int IN_PROGRESS = 7;

  /** ncclInvalidUsage: what the library itself says of a communicator that was aborted. */
  static final int ABORTED = 5;

  private static final String[] NAMES = {
    "ncclSuccess",
    "ncclUnhandledCudaError",
    "ncclSystemError",
    "ncclInternalError",
    "ncclInvalidArgument",
    "ncclInvalidUsage",
    "ncclRemoteError",
    "ncclInProgress",
    "ncclTimeout"
  };

  private NcclResult() {}

  /** The name and the code, and what the library has logged, on one line. */
  static String text(Nccl nccl, int code) {
    String name = code >= 0 && code < NAMES.length ? NAMES[code] : "unknown";
    String log = nccl.lastError().strip().replaceAll("\\s*\\R\\s*", "; ");
    return name + " (" + code + ")" + (log.isEmpty() ? "" : ", log=" + log);
  }

  /** Throws if a call has failed. Allocates nothing otherwise. */
  static void check(Nccl nccl, int code, String call) {
    if (code != SUCCESS) {
      throw new DeviceException(call + " failed: " + text(nccl, code), code);
    }
  }
}
