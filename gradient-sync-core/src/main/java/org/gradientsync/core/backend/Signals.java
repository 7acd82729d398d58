package org.gradientsync.core.backend;

import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Handles signals of the operating system. By reflection, because javac has a warning for {@code
 * sun.misc.Signal} that cannot be turned off.
 */
public final class Signals {
  private static final Map<String, Object> originals = new ConcurrentHashMap<>();

  private Signals() {}

  /**
   * Calls a method for each such signal that this process gets, on a thread of the JVM, instead of
   * what the signal did before.
   *
   * @param name without SIG, for example {@code USR1}
   * @param handler the method
   * @return what the signal did before, for {@link #restore}
   * @throws ReflectiveOperationException if this JVM leaves the signal alone, as with {@code -Xrs};
   *     its cause says so
   */
  public static Object handle(String name, Runnable handler) throws ReflectiveOperationException {
    Class<?> type = Class.forName("sun.misc.SignalHandler");
    Object proxy =
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (object, method, arguments) -> {
              handler.run(); // the JVM calls no other method
              return null;
            });
    Object before = restore(name, proxy);
    if (!Proxy.isProxyClass(before.getClass())) { // not a handler of this class
      originals.put(name, before);
    }
    return before;
  }

  /**
   * Lets a signal do again what it did before.
   *
   * @param name without SIG
   * @param before what {@link #handle} has returned
   * @return what it did until now
   * @throws ReflectiveOperationException as {@link #handle} does
   */
  public static Object restore(String name, Object before) throws ReflectiveOperationException {
    Class<?> signal = Class.forName("sun.misc.Signal");
    return signal
        .getMethod("handle", signal, Class.forName("sun.misc.SignalHandler"))
        .invoke(null, signal(name), before);
  }

  /**
   * {@return the number that this system has for a signal, for example 15 for {@code TERM}}
   *
   * @param name without SIG
   * @throws ReflectiveOperationException if there is no such signal
   */
  public static int number(String name) throws ReflectiveOperationException {
    Object signal = signal(name);
    return (int) signal.getClass().getMethod("getNumber").invoke(signal);
  }

  /**
   * Does what a signal to this process would do now: calls its handler, ends the process as the
   * system does where there is none, or nothing if it is ignored.
   *
   * @param name without SIG, of a signal that ends a process
   * @throws ReflectiveOperationException if this JVM leaves the signal alone, as with {@code -Xrs}
   */
  public static void raise(String name) throws ReflectiveOperationException {
    Class<?> handler = Class.forName("sun.misc.SignalHandler");
    Object system = handler.getField("SIG_DFL").get(null);
    Object now = restore(name, system);
    if (now == system) { // the JVM raises only what it handles
      Runtime.getRuntime().halt(128 + number(name)); // as shells count
    }
    restore(name, now);
    if (now != handler.getField("SIG_IGN").get(null)) {
      Class<?> signal = Class.forName("sun.misc.Signal");
      signal.getMethod("raise", signal).invoke(null, signal(name));
    }
  }

  /**
   * Ends this process as SIGTERM does where this library does not handle it.
   *
   * @throws ReflectiveOperationException if this JVM leaves the signal alone
   */
  public static void terminate() throws ReflectiveOperationException {
    Object original = originals.get("TERM");
    if (original != null) {
      restore("TERM", original);
    }
    raise("TERM");
  }

  private static Object signal(String name) throws ReflectiveOperationException {
    return Class.forName("sun.misc.Signal").getConstructor(String.class).newInstance(name);
  }
}
