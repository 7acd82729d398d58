package org.gradientsync.cuda.internal.driver;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntSupplier;

/**
 * Gets the error code of a call of one of JCuda's libraries, even if the program has enabled
 * JCuda's exceptions with {@code JCudaDriver.setExceptionsEnabled(true)} or the like. That setting
 * affects the whole process, and the exceptions contain only the name of the code.
 */
public final class ReturnCode {
  private static final int LARGEST = 999; // CUDA_ERROR_UNKNOWN

  private final Map<String, Integer> byName = new HashMap<>();

  /**
   * Creates a converter for one library.
   *
   * @param names gives each code's name in exceptions
   */
  public ReturnCode(IntFunction<String> names) {
    for (int code = 0; code <= LARGEST; code++) {
      byName.put(names.apply(code), code);
    }
  }

  /** Makes a call and returns its code. May allocate. */
  public int of(IntSupplier call) {
    try {
      return call.getAsInt();
    } catch (jcuda.CudaException e) {
      return of(e);
    }
  }

  /** The code of an exception; 999 (unknown error) if its message is not a known name. */
  public int of(jcuda.CudaException thrown) {
    return byName.getOrDefault(thrown.getMessage(), LARGEST);
  }
}
