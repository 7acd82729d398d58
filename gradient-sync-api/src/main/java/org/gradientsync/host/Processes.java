package org.gradientsync.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/**
 * The processes that this one can see. A process that has ended stays a zombie until its parent
 * asks for its exit code; here it has ended nevertheless. Any thread may call these methods.
 */
public final class Processes {
  /** For a start time that is not known. */
  public static final long UNKNOWN = 0;

  private static final Path PROC = Path.of("/proc");

  // Fields of /proc/PID/stat, counted behind the command's name.
  private static final int STATE = 0;
  private static final int THREADS = 17;
  private static final int STARTED = 19;

  private Processes() {}

  /**
   * When a process began, which tells it from a later process of the same number.
   *
   * @param process its number
   * @return a number to compare with others of the same machine only, or {@link #UNKNOWN}
   */
  public static long started(long process) {
    try {
      return Long.parseLong(fields(stat(process))[STARTED]);
    } catch (IOException e) {
      return ProcessHandle.of(process)
          .flatMap(handle -> handle.info().startInstant())
          .map(Instant::toEpochMilli)
          .orElse(UNKNOWN);
    }
  }

  /**
   * Whether a process has not ended.
   *
   * @param process its number
   * @param started its {@link #started}, or {@link #UNKNOWN} if any process of that number counts
   * @return false, too, if this process cannot see it
   */
  public static boolean isAlive(long process, long started) {
    try {
      return isAlive(stat(process), started);
    } catch (IOException e) { // it has ended, or this process may open no more files
      return Files.exists(PROC.resolve("self"))
          ? Files.exists(PROC.resolve(Long.toString(process)))
          : ProcessHandle.of(process).map(ProcessHandle::isAlive).orElse(false)
              && (started == UNKNOWN || started(process) == started);
    }
  }

  /** What the contents of /proc/PID/stat say. */
  static boolean isAlive(String stat, long started) {
    String[] fields = fields(stat);
    boolean ended =
        switch (fields[STATE]) {
          case "X", "x" -> true;
          case "Z" -> Long.parseLong(fields[THREADS]) <= 1; // other threads outlive the first one
          default -> false;
        };
    return !ended && (started == UNKNOWN || Long.parseLong(fields[STARTED]) == started);
  }

  /**
   * Whether a process is stopped, by a signal or a debugger.
   *
   * @param process its number
   * @return false, too, if this process cannot see it
   */
  public static boolean isStopped(long process) {
    try {
      return fields(stat(process))[STATE].equalsIgnoreCase("T");
    } catch (IOException e) {
      return false;
    }
  }

  private static String stat(long process) throws IOException {
    Path stat = PROC.resolve(Long.toString(process)).resolve("stat");
    return Files.readString(stat, StandardCharsets.ISO_8859_1); // names are any bytes
  }

  /** Those behind the command's name, in which there may be spaces and parentheses. */
  private static String[] fields(String stat) {
    return stat.substring(stat.lastIndexOf(')') + 2).split(" ");
  }
}
