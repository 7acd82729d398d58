package org.gradientsync.core.backend;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/**
 * The processes that this process can see. A zombie, whose parent has not yet read its exit code,
 * counts as ended. Any thread may call these methods.
 */
public final class Processes {
  /** An unknown start time. */
  public static final long UNKNOWN = 0;

  /**
   * The PID namespace of this process, or {@link #UNKNOWN}. Process ids mean nothing in another.
   */
  public static final long NAMESPACE = namespace();

  private static final Path PROC = Path.of("/proc");

  // Fields of /proc/PID/stat, counted after the command's name.
  private static final int STATE = 0;
  private static final int THREADS = 17;
  private static final int STARTED = 19;

  /**
   * Reused, because waits check often and should allocate next to nothing. Large enough for the
   * fields above.
   */
  private static final byte[] STAT = new byte[1024];

  private Processes() {}

  private static long namespace() {
    try {
      String name = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
      return Long.parseLong(name.replaceAll("\\D", "")); // pid:[4026531836]
    } catch (IOException | RuntimeException e) {
      return UNKNOWN;
    }
  }

  /**
   * The start time of a process, which distinguishes it from a later process with the same id.
   *
   * @param process its id
   * @return a number that is comparable on this machine only, or {@link #UNKNOWN}
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
   * {@return whether a process has not ended; false also if this process cannot see it}
   *
   * @param process its id
   * @param started its {@link #started}, or {@link #UNKNOWN} to accept any process with that id
   */
  public static synchronized boolean isAlive(long process, long started) {
    try {
      return isAlive(STAT, read(process), started);
    } catch (IOException e) { // it has ended, or this process cannot open more files
      return Files.exists(PROC.resolve("self"))
          ? Files.exists(PROC.resolve(Long.toString(process)))
          : ProcessHandle.of(process).map(ProcessHandle::isAlive).orElse(false)
              && (started == UNKNOWN || started(process) == started);
    }
  }

  /** Parses the first bytes of /proc/PID/stat. */
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
   * {@return whether a process is stopped by a signal or a debugger; false if it cannot be seen}
   *
   * @param process its id
   */
  public static synchronized boolean isStopped(long process) {
    try {
      byte state = STAT[field(STAT, read(process), STATE)];
      return state == 'T' || state == 't';
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * {@return when the threads of this process have started: by the bytes of the name, as Linux
   * keeps it, the {@link #started} of the oldest thread that has it; empty if this process cannot
   * see that}
   */
  public static synchronized Map<String, Long> threadsStarted() {
    Map<String, Long> started = new HashMap<>();
    try (DirectoryStream<Path> threads = Files.newDirectoryStream(PROC.resolve("self/task"))) {
      for (Path thread : threads) {
        try {
          int length = read(thread.toString());
          int state = field(STAT, length, STATE);
          int name = new String(STAT, 0, length, StandardCharsets.ISO_8859_1).indexOf('(') + 1;
          started.merge(
              new String(STAT, name, state - 2 - name, StandardCharsets.ISO_8859_1),
              number(STAT, field(STAT, length, STARTED)),
              Math::min);
        } catch (IOException e) {
          continue; // it has ended
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      started.clear();
    }
    return started;
  }

  private static int read(long process) throws IOException {
    return read("/proc/" + process);
  }

  private static int read(String folder) throws IOException {
    try (FileInputStream stat = new FileInputStream(folder + "/stat")) {
      int length = stat.read(STAT);
      if (length <= 0) {
        throw new IOException("process has ended: " + folder);
      }
      return length;
    }
  }

  /** The offset of a field. The command's name may contain spaces and parentheses. */
  private static int field(byte[] stat, int length, int field) {
    int at = length - 1;
    while (stat[at] != ')') {
      at--;
    }
    at += 2;
    for (int i = 0; i < field; i++) {
      while (stat[at++] != ' ') {
        // skip to the next field
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
