package org.gradientsync.tools.run;

import java.lang.reflect.Proxy;
import java.util.List;
import java.util.function.Consumer;

/** Handles SIGUSR1 and SIGUSR2, which otherwise end or crash a JVM. */
final class UserSignals {
  private UserSignals() {}

  /**
   * Calls the handler with {@code USR1} or {@code USR2} for each such signal that this process
   * gets. By reflection, as javac has a warning for {@code sun.misc.Signal} that cannot be
   * suppressed.
   */
  static void handle(Consumer<String> handler) {
    try {
      Class<?> signal = Class.forName("sun.misc.Signal");
      Class<?> type = Class.forName("sun.misc.SignalHandler");
      for (String name : List.of("USR1", "USR2")) {
        Object proxy =
            Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (self, method, arguments) -> {
                  handler.accept(name);
                  return null;
                });
        signal
            .getMethod("handle", signal, type)
            .invoke(null, signal.getConstructor(String.class).newInstance(name), proxy);
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e); // each JDK has these
    }
  }
}
