package org.gradientsync.mpi.direct;

import com.kenai.jffi.CallContext;
import com.kenai.jffi.CallingConvention;
import com.kenai.jffi.Invoker;
import com.kenai.jffi.Type;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Collections;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Calls through jffi: on x86-64 numbers go from JNI to the C function at once, where JNA takes them
 * through libffi. A class of its own, because jffi may be missing.
 */
final class JffiCalls {
  private static final Logger log = LoggerFactory.getLogger(JffiCalls.class);
  private static final Invoker INVOKER = invoker(); // or null

  private JffiCalls() {}

  /** Has jffi write its library to a folder, and load it: not every system lets it. */
  private static Invoker invoker() {
    try {
      return Invoker.getInstance();
    } catch (LinkageError | RuntimeException e) {
      String reason = e.toString().lines().findFirst().orElseThrow(); // more is a stack trace
      log.debug("jffi does not load, so small averages take longer: reason={}", reason);
      return null;
    }
  }

  /**
   * A handle of a function that takes numbers of 64 bits and returns one of 32.
   *
   * @return null if jffi does not load
   */
  static MethodHandle find(long address, int arguments) throws ReflectiveOperationException {
    if (INVOKER == null) {
      return null;
    }
    Type[] types = Collections.nCopies(arguments, Type.SINT64).toArray(Type[]::new);
    CallContext context =
        CallContext.getCallContext(Type.SINT32, types, CallingConvention.DEFAULT, false);
    List<Class<?>> longs = Collections.nCopies(arguments, long.class);
    MethodType numbers = MethodType.methodType(long.class, longs);
    MethodHandle invoke =
        MethodHandles.publicLookup()
            .findVirtual(
                Invoker.class,
                "invokeL" + arguments + "NoErrno",
                numbers.insertParameterTypes(0, CallContext.class, long.class));
    return MethodHandles.explicitCastArguments(
        MethodHandles.insertArguments(invoke, 0, INVOKER, context, address),
        numbers.changeReturnType(int.class));
  }
}
