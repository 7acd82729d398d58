package org.gradientsync.cuda.internal.driver;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntSupplier;

/**
 * What calls of one of JCuda's libraries have returned, also where the program lets it throw
 * exceptions ({@code JCudaDriver.setExceptionsEnabled(true)} and the like): that holds for the
 * whole process, and the exceptions have the codes' names only.
 */
public final class ReturnCode {
  private static final int LARGEST = 999; // of the driver: "unknown error"

  private final Map<String, Integer> byName = new HashMap<>();

  /**
   * Codes.
   *
   * @param names what each is called in exceptions
   */
  public ReturnCode(IntFunction<String> names) {
    for (int code = 0; code <= LARGEST; code++) {
      byName.put(names.apply(code), code);
    }
  }

  /** Makes a call; for calls that may allocate. */
  public int of(IntSupplier call) {
    try {
      return call.getAsInt();
    } catch (jcuda.CudaException e) {
      return of(e);
    }
  }

  /** The code in what was thrown; that of an unknown error if it is none that is known. */
  public int of(jcuda.CudaException thrown) {
    return byName.getOrDefault(thrown.getMessage(), LARGEST);
  }
}
