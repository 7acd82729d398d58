package org.gradientsync.cuda.internal.driver;

import java.util.HashMap;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.IntSupplier;
import org.gradientsync.DeviceException;

/**
 * Makes calls of one of JCuda's libraries and turns error codes into exceptions, even if the
 * program has enabled JCuda's own with {@code JCudaDriver.setExceptionsEnabled(true)} or the like.
 * That setting affects the whole process, and the exceptions contain only the name of the code.
 *
 * <p>Frequent calls pass their arguments next to a function that captures nothing: a lambda that
 * captures them can be garbage.
 */
public final class ReturnCode {
  private static final int LARGEST = 999; // CUDA_ERROR_UNKNOWN

  private final IntFunction<String> names;
  private final Map<String, Integer> byName = new HashMap<>();

  /** A call with one argument. */
  interface Call1<A> {
    int make(A argument);
  }

  /** A call with two arguments. */
  interface Call2<A, B> {
    int make(A first, B second);
  }

  /**
   * Creates a converter for one library.
   *
   * @param names gives each code's name in exceptions
   */
  public ReturnCode(IntFunction<String> names) {
    this.names = names;
    for (int code = 0; code <= LARGEST; code++) {
      byName.put(names.apply(code), code);
    }
  }

  /** Makes a call and returns its code. May allocate. */
  public int of(IntSupplier call) {
    return of(IntSupplier::getAsInt, call);
  }

  /** Makes a call and returns its code. */
  <A> int of(Call1<A> call, A argument) {
    try {
      return call.make(argument);
    } catch (jcuda.CudaException e) {
      return of(e);
    }
  }

  /** The code of an exception; 999 (unknown error) if its message is not a known name. */
  int of(jcuda.CudaException thrown) {
    return byName.getOrDefault(thrown.getMessage(), LARGEST);
  }

  /** Makes a call. May allocate. */
  public void check(String name, IntSupplier call) {
    check(of(call), name, "");
  }

  /** Makes a call. May allocate. The key and its value are for the exception. */
  void check(String name, String key, Object value, IntSupplier call) {
    int code = of(call);
    if (code != 0) {
      throw failed(code, name, ", " + key + "=" + value);
    }
  }

  <A> void check(String name, Call1<A> call, A argument) {
    check(of(call, argument), name, "");
  }

  <A, B> void check(String name, Call2<A, B> call, A first, B second) {
    int code;
    try {
      code = call.make(first, second);
    } catch (jcuda.CudaException e) {
      code = of(e);
    }
    check(code, name, "");
  }

  /**
   * Throws unless a call has succeeded.
   *
   * @param detail appended to the text, for example {@code ", bytes=8"}
   */
  public void check(int code, String name, String detail) {
    if (code != 0) {
      throw failed(code, name, detail);
    }
  }

  /** As above. Allocates nothing if the call has succeeded. */
  void check(int code, String name, String key, long value) {
    if (code != 0) {
      throw failed(code, name, ", " + key + "=" + value);
    }
  }

  DeviceException failed(int code, String name, String detail) {
    return new DeviceException(
        name + " failed: " + names.apply(code) + " (" + code + ")" + detail, code);
  }
}
