package org.gradientsync.internal.ranks;

/** How a rank leaves a group, for the texts of the others' exceptions. */
public enum Departure {
  /** Its program has closed what it had, or has come to its end. */
  CLOSED("it closed its side or ended"),

  /** A signal ends its process. */
  SIGNAL("its process is shutting down after a signal (SIGTERM, SIGINT or SIGHUP)"),

  /** Its program ends its process. */
  EXIT("its program called System.exit");

  private static final Departure[] ALL = values();

  private final String text;

  Departure(String text) {
    this.text = text;
  }

  /**
   * As exceptions say it.
   *
   * @return for example {@code it closed its side or ended}
   */
  String text() {
    return text;
  }

  /** That of a number that another rank has sent. */
  static Departure of(int number) {
    return number >= 0 && number < ALL.length ? ALL[number] : CLOSED;
  }

  /**
   * What ends this process. To be called in a shutdown hook.
   *
   * @return {@link #CLOSED} if its last thread has ended
   */
  public static Departure ofThisProcess() {
    Departure found = CLOSED;
    for (StackTraceElement[] frames : Thread.getAllStackTraces().values()) {
      for (StackTraceElement frame : frames) {
        if (frame.getClassName().startsWith("java.lang.Terminator")) {
          return SIGNAL;
        }
        if (frame.getClassName().equals("java.lang.Runtime")
            && frame.getMethodName().equals("exit")) {
          found = EXIT;
        }
      }
    }
    return found;
  }
}
