package org.gradientsync.internal.host;

import java.io.FileInputStream;
import java.io.IOException;
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

  /** Reused, because waits look often and allocate next to nothing. The fields above fit in it. */
  private static final byte[] STAT = new byte[1024];

  private Processes() {}

  /**
   * When a process began, which tells it from a later process of the same number.
   *
   * @param process its number
   * @return a number to compare with others of the same machine only, or {@link #UNKNOWN}
   */
  public static synchronized long started(long process) {
    try {
      return number(STAT, field(STAT, read(process), STARTED));
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
  public static synchronized boolean isAlive(long process, long started) {
    try {
      return isAlive(STAT, read(process), started);
    } catch (IOException e) { // it has ended, or this process may open no more files
      return Files.exists(PROC.resolve("self"))
          ? Files.exists(PROC.resolve(Long.toString(process)))
          : ProcessHandle.of(process).map(ProcessHandle::isAlive).orElse(false)
              && (started == UNKNOWN || started(process) == started);
    }
  }

  /** What the first bytes of /proc/PID/stat say. */
  static boolean isAlive(byte[] stat, int length, long started) {
    boolean ended =
        switch (stat[field(stat, length, STATE)]) {
          case 'X', 'x' -> true;
          // The other threads of a process outlive its first one.
          case 'Z' -> number(stat, field(stat, length, THREADS)) <= 1;
          default -> false;
        };
    return !ended && (started == UNKNOWN || number(stat, field(stat, length, STARTED)) == started);
  }

  /**
   * Whether a process is stopped, by a signal or a debugger.
   *
   * @param process its number
   * @return false, too, if this process cannot see it
   */
  public static synchronized boolean isStopped(long process) {
    try {
      byte state = STAT[field(STAT, read(process), STATE)];
      return state == 'T' || state == 't';
    } catch (IOException e) {
      return false;
    }
  }

  private static int read(long process) throws IOException {
    try (FileInputStream stat = new FileInputStream("/proc/" + process + "/stat")) {
      int length = stat.read(STAT);
      if (length <= 0) {
        throw new IOException("process has ended: process=" + process);
      }
      return length;
    }
  }

  /** Where a field begins. In the command's name there may be spaces and parentheses. */
  private static int field(byte[] stat, int length, int field) {
    int at = length - 1;
    while (stat[at] != ')') {
      at--;
    }
    at += 2;
    for (int i = 0; i < field; i++) {
      while (stat[at++] != ' ') {
        // to the next one
      }
    }
    return at;
  }

  private static long number(byte[] stat, int at) {
    long number = 0;
    for (int i = at; stat[i] >= '0' && stat[i] <= '9'; i++) {
      number = 10 * number + stat[i] - '0';
    }
    return number;
  }
}
