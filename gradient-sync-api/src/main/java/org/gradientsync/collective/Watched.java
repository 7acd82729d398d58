package org.gradientsync.collective;

import java.util.Locale;

/** The line that sums up what a rank is doing, for all who do not want to read its report. */
final class Watched {
  private Watched() {}

  /**
   * The line.
   *
   * @param place where the rank runs
   * @param why what made it write a report, or an empty text if others asked for it
   * @param waiting for whom it waits in which call, or an empty text
   * @param calls its calls
   * @param caller the thread that made the last one, or null
   */
  static String line(String place, String why, String waiting, CallLog calls, Thread caller) {
    StringBuilder line = new StringBuilder(at(place));
    if (!why.isEmpty()) {
      line.append(why).append(": ");
    }
    if (!waiting.isEmpty()) {
      line.append(waiting).append(", last finished ").append(calls.lastFinished());
    } else {
      line.append(
          calls.isEmpty()
              ? "has made no call"
              : String.format(
                  Locale.ROOT,
                  "%s since %.1f s, last finished %s",
                  calls.isRunning() ? "in " + calls.current() : "is in no call",
                  calls.sinceLast() / 1e9,
                  calls.lastFinished()));
      Thread thread = !calls.isRunning() && caller instanceof HelpingThread h ? h.helps() : caller;
      if (thread != null) {
        line.append(", thread \"").append(thread.getName()).append('"').append(at(thread));
      }
    }
    return line.toString();
  }

  /** How a line begins that tells of a rank at a place, which may be an empty text. */
  static String at(String place) {
    return place.isEmpty() ? "" : "(" + place + ") ";
  }

  /** The innermost frame that is not the JDK's: the user's own code, if it is there. */
  private static String at(Thread thread) {
    StackTraceElement[] frames = thread.getStackTrace();
    for (StackTraceElement frame : frames) {
      String module = frame.getModuleName();
      if (module == null || !module.startsWith("java.")) {
        return " at " + frame;
      }
    }
    return frames.length > 0 ? " at " + frames[0] : " has ended";
  }
}
