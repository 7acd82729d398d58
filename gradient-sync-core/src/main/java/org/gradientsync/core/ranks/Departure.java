package org.gradientsync.core.ranks;

/** How a rank left a group. The exceptions of the other ranks report it. */
public enum Departure {
  CLOSED("it closed its side or ended"),
  SIGNAL("its process is shutting down after a signal (SIGTERM, SIGINT or SIGHUP)"),
  EXIT("its program called System.exit"),
  STAYED("it stays in the job before, as not all can go to this one");

  private final String text;

  Departure(String text) {
    this.text = text;
  }

  public String text() {
    return text;
  }

  /** The departure with a number that another rank has sent; {@link #CLOSED} if there is none. */
  static Departure of(int number) {
    Departure[] all = values();
    return number >= 0 && number < all.length ? all[number] : CLOSED;
  }

  /** What ends this process, in a shutdown hook; {@link #CLOSED} if its last thread has ended. */
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
