package org.gradientsync.mpi.direct;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.Array;

/**
 * The two functions that every message calls: through {@code java.lang.foreign} where the JDK has
 * it and the user allows native access, because its calls take a fraction of JNA's time, otherwise
 * through JNA. The former by reflection, because this is compiled for Java 17.
 */
final class RequestCalls {
  private static volatile NativeLibrary library; // set before the first request is made

  /** Constants, so that the JIT compiler inlines the calls; null where JNA calls. */
  private static final class Handles {
    static final MethodHandle START = find(library, "MPI_Start", 1);
    static final MethodHandle TEST = find(library, "MPI_Test", 3);
  }

  private RequestCalls() {}

  static void use(NativeLibrary newLibrary) {
    library = newLibrary;
  }

  static int start(long request) {
    if (Handles.START == null) {
      return Functions.MPI_Start(request);
    }
    try {
      return (int) Handles.START.invokeExact(request);
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  static int test(long request, long flag, long status) {
    if (Handles.TEST == null) {
      return Functions.MPI_Test(request, flag, status);
    }
    try {
      return (int) Handles.TEST.invokeExact(request, flag, status);
    } catch (Throwable e) {
      throw unexpected(e);
    }
  }

  /** C throws nothing, but the JVM may: an {@link OutOfMemoryError}, for example. */
  private static RuntimeException unexpected(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    return new IllegalStateException(e);
  }

  /**
   * {@return a handle of a function that takes numbers of 64 bits and returns one of 32, or null if
   * {@code java.lang.foreign} cannot be used}
   */
  static MethodHandle find(NativeLibrary from, String name, int arguments) {
    long address = Pointer.nativeValue(from.getFunction(name));
    try {
      Module own = RequestCalls.class.getModule();
      // Where it is not enabled, the JVM would warn, or throw.
      boolean enabled = (boolean) Module.class.getMethod("isNativeAccessEnabled").invoke(own);
      return enabled ? foreign(address, arguments) : null;
    } catch (ReflectiveOperationException e) {
      return null; // no java.lang.foreign, or a preview of it
    }
  }

  private static MethodHandle foreign(long address, int arguments)
      throws ReflectiveOperationException {
    Class<?> linker = foreign("Linker");
    Class<?> segment = foreign("MemorySegment");
    Class<?> descriptor = foreign("FunctionDescriptor");
    Class<?> layouts = foreign("ValueLayout");
    Object longs = Array.newInstance(foreign("MemoryLayout"), arguments);
    for (int i = 0; i < arguments; i++) {
      Array.set(longs, i, layouts.getField("JAVA_LONG").get(null));
    }
    Object type =
        descriptor
            .getMethod("of", foreign("MemoryLayout"), longs.getClass())
            .invoke(null, layouts.getField("JAVA_INT").get(null), longs);
    Object function = segment.getMethod("ofAddress", long.class).invoke(null, address);
    Object options = Array.newInstance(foreign("Linker$Option"), 0);
    return (MethodHandle)
        linker
            .getMethod("downcallHandle", segment, descriptor, options.getClass())
            .invoke(linker.getMethod("nativeLinker").invoke(null), function, type, options);
  }

  private static Class<?> foreign(String name) throws ClassNotFoundException {
    return Class.forName("java.lang.foreign." + name);
  }
}
