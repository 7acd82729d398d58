package org.gradientsync.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * How much memory the machine has left. Linux gives more than it has, and ends processes when they
 * use it; so what is large is refused before.
 */
final class FreeMemory {
  /** From how many bytes on it is worth a look. */
  static final long MUCH = 64L << 20;

  private static final long GROWTH = 8L << 20; // less is other programs' coming and going
  private static final long STILL_NANOS = 500_000_000;
  private static final long LOOK_NANOS = 20_000_000;
  private static final long SPARE = 256L << 20; // for everybody else
  private static final Path MEMINFO = Path.of("/proc/meminfo");

  private FreeMemory() {}

  /** Refuses more than a file system in memory, or the machine, has room for. */
  static void require(long bytes, Path folder) throws IOException {
    if (bytes < MUCH) {
      return;
    }
    FileStore store = Files.getFileStore(folder);
    long free = store.getUsableSpace();
    if (bytes > free && store.getTotalSpace() > 0) { // which is 0 where it has no limit
      throw new IOException(
          "the file system is full: folder=" + folder + ", bytes=" + bytes + ", free=" + free);
    }
    requireLeft(bytes);
  }

  /**
   * Takes the first bytes of a piece of ordinary memory, if the machine has room for the whole.
   * Only one thread at a time, so that the next one sees what is taken.
   *
   * @throws IOException if it has not
   * @throws OutOfMemoryError if the JVM's limit is in the way
   */
  static ByteBuffer allocate(int bytes, long whole) throws IOException {
    if (whole < MUCH) {
      return HostBuffers.allocate(bytes);
    }
    synchronized (FreeMemory.class) {
      requireLeft(whole);
      return HostBuffers.allocate(bytes);
    }
  }

  /** Also looks again, while the garbage collector frees the memory of closed buffers. */
  private static void requireLeft(long bytes) throws IOException {
    long left = left();
    if (bytes <= left - SPARE) {
      return;
    }
    System.gc();
    long most = left;
    long grown = System.nanoTime();
    while (System.nanoTime() - grown < STILL_NANOS) {
      LockSupport.parkNanos(LOOK_NANOS);
      left = left();
      if (bytes <= left - SPARE) {
        return;
      }
      if (left > most + GROWTH) {
        most = left;
        grown = System.nanoTime();
      }
    }
    throw new IOException(
        "the machine has too little memory left: bytes=" + bytes + ", available=" + left);
  }

  /** In bytes; very much if that cannot be found out. */
  private static long left() {
    long available = read("MemAvailable:");
    return available == Long.MAX_VALUE ? available : available + read("SwapFree:");
  }

  /** A line of the kernel's, in bytes. */
  private static long read(String name) {
    try (Stream<String> lines = Files.lines(MEMINFO)) {
      return lines
          .filter(line -> line.startsWith(name))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
          .findFirst()
          .orElse(Long.MAX_VALUE);
    } catch (IOException | RuntimeException e) {
      return Long.MAX_VALUE; // not Linux, or not to be read
    }
  }
}
