package org.gradientsync.cuda;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import jcuda.driver.CUgraph;
import jcuda.driver.CUresult;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.CudaApi;

/**
 * Wraps a driver, simulated or real, and makes one call fail with a chosen code. It can also wrap a
 * cuBLAS; both share one count of calls.
 *
 * <p>If the error is sticky, all later calls fail with it, too, as on a GPU whose kernel has
 * crashed.
 */
final class FaultyCudaApi {
  /** CUDA_ERROR_OUT_OF_MEMORY. */
  static final int OUT_OF_MEMORY = 2;

  /**
   * CUDA_ERROR_DEVICE_UNAVAILABLE: another process uses the device exclusively, or the device is
   * lost.
   */
  static final int DEVICE_UNAVAILABLE = 46;

  /** CUDA_ERROR_LAUNCH_FAILED: a kernel has crashed, and the context is unusable. */
  static final int LAUNCH_FAILED = 719;

  /** CUDA_ERROR_UNKNOWN. */
  static final int UNKNOWN = 999;

  /** Sticky errors: the context cannot be used any more. */
  private static final Set<Integer> STICKY =
      Set.of(
          CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
          CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
          CUresult.CUDA_ERROR_ASSERT,
          CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
          CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
          CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
          CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
          CUresult.CUDA_ERROR_INVALID_PC,
          LAUNCH_FAILED);

  /** Calls that never reach the driver. */
  private static final Set<String> NEVER_FAIL =
      Set.of("pointer", "arguments", "streamOf", "handleOf");

  /**
   * Release calls, which take effect although they fail. Otherwise a test would report a leak, and
   * a real GPU would keep the resources.
   */
  private static final Set<String> RELEASES =
      Set.of(
          "useContext",
          "free",
          "destroyStream",
          "destroyEvent",
          "destroyGraph",
          "unloadModule",
          "pageUnlock",
          "closeImport",
          "destroy");

  private final CudaApi api;
  private final List<List<String>> made = new ArrayList<>();
  private boolean tracing;
  private int failing;
  private int code;
  private String failed;
  private List<StackTraceElement> failedIn = List.of();

  FaultyCudaApi(CudaApi target) {
    api = around(CudaApi.class, target);
  }

  /** Returns the wrapped driver. */
  CudaApi api() {
    return api;
  }

  /** Wraps a cuBLAS in the same way. */
  BlasApi blas(BlasApi target) {
    return around(BlasApi.class, target);
  }

  /**
   * Makes a call fail.
   *
   * @param call the call's number, from 1
   * @param newCode the error code
   */
  synchronized void failAt(int call, int newCode) {
    failing = call;
    code = newCode;
  }

  /** Records the call stacks from now on. */
  synchronized void trace() {
    tracing = true;
  }

  /**
   * Returns the calls worth failing, in order: of those with the same call stack, the first and the
   * last one. With the system property {@code faults.every}, returns all calls.
   *
   * @return their numbers, from 1
   */
  synchronized List<Integer> callsToFail() {
    if (Boolean.getBoolean("faults.every")) {
      return IntStream.rangeClosed(1, made.size()).boxed().toList();
    }
    Map<List<String>, Integer> last = new HashMap<>();
    Set<Integer> numbers = new TreeSet<>();
    for (int i = 0; i < made.size(); i++) {
      if (!last.containsKey(made.get(i))) {
        numbers.add(i + 1);
      }
      last.put(made.get(i), i + 1);
    }
    numbers.addAll(last.values());
    return List.copyOf(numbers);
  }

  /** Returns the call stack of a call. */
  synchronized List<String> stackOf(int number) {
    return made.get(number - 1);
  }

  private List<String> stackFor(String name) {
    List<String> stack = new ArrayList<>();
    stack.add(name);
    if (tracing) {
      for (StackTraceElement frame : new Throwable().getStackTrace()) {
        if (frame.getClassName().startsWith("org.gradientsync") && frame.getLineNumber() > 0) {
          stack.add(frame.getClassName() + ":" + frame.getLineNumber());
        }
      }
    }
    return stack;
  }

  /** Returns the name of the first call that has failed, or null. */
  synchronized String failed() {
    return failed;
  }

  /**
   * Returns whether a method, given as Class.method, was on the stack of the first call that
   * failed.
   */
  synchronized boolean hasFailedIn(String method) {
    return failedIn.stream()
        .anyMatch(f -> (f.getClassName() + "." + f.getMethodName()).endsWith("." + method));
  }

  /**
   * Returns an error code as messages show it, for example {@code CUDA_ERROR_OUT_OF_MEMORY (2)}.
   */
  static String text(int code) {
    String name =
        code == DEVICE_UNAVAILABLE ? "CUDA_ERROR_DEVICE_UNAVAILABLE" : CUresult.stringFor(code);
    return name + " (" + code + ")";
  }

  private <T> T around(Class<T> type, T target) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> answer(proxy, target, method, arguments)));
  }

  private Object answer(Object proxy, Object target, Method method, Object[] arguments)
      throws Throwable {
    String name = method.getName();
    if (method.getDeclaringClass() == Object.class) {
      return switch (name) {
        case "equals" -> proxy == arguments[0];
        case "hashCode" -> System.identityHashCode(proxy);
        default -> "faulty " + target;
      };
    }
    if (!NEVER_FAIL.contains(name) && fails(name)) {
      if (RELEASES.contains(name)) {
        invoke(target, method, arguments);
      } else if (name.equals("endCapture")) { // a failed endCapture ends the capture, too
        ((CudaApi) target).destroyGraph((CUgraph) invoke(target, method, arguments));
      }
      throw new DeviceException(name + " failed: " + text(code), code);
    }
    return invoke(target, method, arguments);
  }

  private synchronized boolean fails(String name) {
    made.add(stackFor(name));
    if (failing == 0
        || made.size() != failing && !(made.size() > failing && STICKY.contains(code))) {
      return false;
    }
    if (failed == null) {
      failed = name;
      failedIn = List.of(new Throwable().getStackTrace());
    }
    return true;
  }

  private static Object invoke(Object target, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
