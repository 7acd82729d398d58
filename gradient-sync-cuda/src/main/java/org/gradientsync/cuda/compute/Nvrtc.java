package org.gradientsync.cuda.compute;

import java.util.Arrays;
import jcuda.nvrtc.JNvrtc;
import jcuda.nvrtc.nvrtcProgram;
import jcuda.nvrtc.nvrtcResult;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.internal.driver.NativeFolder;
import org.gradientsync.cuda.internal.driver.ReturnCode;

/** NVIDIA's run-time compiler. Optional: the library's own kernels do not need it. */
final class Nvrtc {
  /** The newest capability that NVRTC 12.6 compiles for; newer GPUs run the same PTX. */
  private static final int NEWEST_CAPABILITY = 90;

  private static final ReturnCode CODES = new ReturnCode(nvrtcResult::stringFor);

  private static boolean loaded;
  private static UnavailableException failure;

  private Nvrtc() {}

  /**
   * Loads NVRTC, once per process.
   *
   * @throws UnavailableException if it cannot be loaded; the message is one line that says what to
   *     do
   */
  static synchronized void load() {
    if (loaded) {
      return;
    }
    if (failure == null) {
      try {
        NativeFolder.whileLoading(() -> JNvrtc.nvrtcVersion(new int[1], new int[1]));
        loaded = true;
        return;
      } catch (LinkageError e) {
        String reason = NativeFolder.reason(e);
        failure =
            new UnavailableException(
                reason.contains("libnvrtc.so.12")
                    ? "libnvrtc.so.12 is missing: install CUDA 12's NVRTC, or load PTX instead"
                    : "NVRTC does not load (load PTX instead): " + reason,
                e);
      }
    }
    throw failure;
  }

  /** The given options, plus the GPU's architecture if they name none. */
  static String[] options(int capability, String... given) {
    for (String option : given) {
      if (option.startsWith("--gpu-architecture") || option.startsWith("-arch")) {
        return given;
      }
    }
    String[] options = Arrays.copyOf(given, given.length + 1);
    options[given.length] = "--gpu-architecture=compute_" + Math.min(capability, NEWEST_CAPABILITY);
    return options;
  }

  /** Compiles to PTX. If that fails, the exception's message contains the compiler's log. */
  static String compile(String source, String... options) {
    load();
    nvrtcProgram program = new nvrtcProgram();
    CODES.check(
        "nvrtcCreateProgram",
        () -> JNvrtc.nvrtcCreateProgram(program, source, "source.cu", 0, null, null));
    try {
      int result = CODES.of(() -> JNvrtc.nvrtcCompileProgram(program, options.length, options));
      if (result != nvrtcResult.NVRTC_SUCCESS) {
        String[] log = {""};
        JNvrtc.nvrtcGetProgramLog(program, log);
        CODES.check(
            result,
            "nvrtcCompileProgram",
            ", options=" + Arrays.toString(options) + ", log=" + log[0].strip());
      }
      String[] ptx = new String[1];
      CODES.check("nvrtcGetPTX", () -> JNvrtc.nvrtcGetPTX(program, ptx));
      return ptx[0];
    } finally {
      JNvrtc.nvrtcDestroyProgram(program);
    }
  }
}
