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
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.CudaApi;

/**
 * A driver around a driver, simulated or real, of which one call fails with a code of the test's.
 * Also a cuBLAS around one, whose calls are counted with the driver's.
 *
 * <p>After an error that stays, every later call fails with it, as on a GPU whose kernel has
 * crashed.
 */
final class FaultyCudaApi {
  /** CUDA_ERROR_OUT_OF_MEMORY. */
  static final int OUT_OF_MEMORY = 2;

  /** CUDA_ERROR_DEVICE_UNAVAILABLE: another process has it for itself, or it is lost. */
  static final int DEVICE_UNAVAILABLE = 46;

  /** CUDA_ERROR_LAUNCH_FAILED: a kernel crashed, and with it the context. */
  static final int LAUNCH_FAILED = 719;

  /** CUDA_ERROR_UNKNOWN. */
  static final int UNKNOWN = 999;

  /** Those after which the context is of no use any more. */
  private static final Set<Integer> STAY =
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

  /** Those that JCudaApi makes without asking the driver. */
  private static final Set<String> NEVER_FAIL = Set.of("pointer", "arguments", "streamOf");

  /**
   * Those that are made although they fail: what was to be given back is not to be counted as
   * forgotten, and a real GPU is to be left as it was found.
   */
  private static final Set<String> MADE =
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

  /** The driver to be used. */
  CudaApi api() {
    return api;
  }

  /** cuBLAS, in the same way. */
  BlasApi blas(BlasApi target) {
    return around(BlasApi.class, target);
  }

  /**
   * Lets a call fail.
   *
   * @param call its number, from 1
   * @param newCode with what
   */
  synchronized void failAt(int call, int newCode) {
    failing = call;
    code = newCode;
  }

  /** Notes from now on where calls come from. */
  synchronized void trace() {
    tracing = true;
  }

  /**
   * Where each call came from, in the order of the calls; of those that came the same way, only the
   * first and the last one. With the system property {@code faults.every}: each single call.
   *
   * @return their numbers, from 1
   */
  synchronized List<Integer> telling() {
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

  /** Where a call came from. */
  synchronized List<String> wayOf(int number) {
    return made.get(number - 1);
  }

  private List<String> way(String name) {
    List<String> way = new ArrayList<>();
    way.add(name);
    if (tracing) {
      for (StackTraceElement frame : new Throwable().getStackTrace()) {
        if (frame.getClassName().startsWith("org.gradientsync") && frame.getLineNumber() > 0) {
          way.add(frame.getClassName() + ":" + frame.getLineNumber());
        }
      }
    }
    return way;
  }

  /** The first call that has failed, or null. */
  synchronized String failed() {
    return failed;
  }

  /** Whether the first call that has failed came by way of a method, given as Class.method. */
  synchronized boolean hasFailedIn(String method) {
    return failedIn.stream()
        .anyMatch(f -> (f.getClassName() + "." + f.getMethodName()).endsWith("." + method));
  }

  /** As it stands in messages, for example {@code CUDA_ERROR_OUT_OF_MEMORY (2)}. */
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
      if (MADE.contains(name)) {
        invoke(target, method, arguments);
      } else if (name.equals("endCapture")) { // one that fails ends it all the same
        ((CudaApi) target).destroyGraph((CUgraph) invoke(target, method, arguments));
      }
      throw new CudaException(name + " failed: " + text(code), code);
    }
    return invoke(target, method, arguments);
  }

  private synchronized boolean fails(String name) {
    made.add(way(name));
    if (failing == 0 || made.size() != failing && !(made.size() > failing && STAY.contains(code))) {
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
