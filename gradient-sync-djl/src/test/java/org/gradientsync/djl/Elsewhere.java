package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.stream.Stream;

/** Arrays and managers that say they are on another device, or larger, than they are. */
final class Elsewhere {
  private Elsewhere() {}

  /** What a fake answers instead of the real object; null to ask that. */
  private interface Answer {
    Object to(Method method, Object[] args);
  }

  /** Stays on the CPU when it is moved. */
  static NDArray array(NDArray real, Device device) {
    return fake(
        NDArray.class,
        real,
        (method, args) ->
            switch (method.getName()) {
              case "getDevice" -> device;
              case "toDevice" -> array(real, (Device) args[0]);
              default -> null;
            });
  }

  /** Has the memory of a smaller one. */
  static NDArray sized(NDArray real, Shape shape) {
    return fake(
        NDArray.class,
        real,
        (method, args) ->
            switch (method.getName()) {
              case "getShape" -> shape;
              case "size" -> args == null ? shape.size() : null;
              default -> null;
            });
  }

  /** Its arrays are on the CPU. */
  static NDManager manager(NDManager real, Device device) {
    return fake(
        NDManager.class,
        real,
        (method, args) ->
            switch (method.getName()) {
              case "getDevice" -> device;
              case "newSubManager" ->
                  manager(
                      real.newSubManager(),
                      args == null || args.length == 0 ? device : (Device) args[0]);
              default -> null;
            });
  }

  private static <T> T fake(Class<T> type, T real, Answer answer) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(), new Class<?>[] {type}, new Fake(real, answer)));
  }

  /** The engine takes real arguments only. */
  private record Fake(Object real, Answer answer) implements InvocationHandler {
    @Override
    public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
      Object own = answer.to(method, args);
      if (own != null) {
        return own;
      }
      Object[] reals = args == null ? null : Stream.of(args).map(Fake::unwrap).toArray();
      try {
        return method.invoke(real, reals);
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }

    private static Object unwrap(Object argument) {
      return argument != null
              && Proxy.isProxyClass(argument.getClass())
              && Proxy.getInvocationHandler(argument) instanceof Fake fake
          ? fake.real
          : argument;
    }
  }
}
