package org.gradientsync.core.ranks;

import java.util.Arrays;
import java.util.List;

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
    List<String> frames =
        Thread.getAllStackTraces().values().stream()
            .flatMap(Arrays::stream)
            .map(frame -> frame.getClassName() + "." + frame.getMethodName())
            .toList();
    boolean signal = frames.stream().anyMatch(name -> name.startsWith("java.lang.Terminator"));
    return signal ? SIGNAL : frames.contains("java.lang.Runtime.exit") ? EXIT : CLOSED;
  }
}
