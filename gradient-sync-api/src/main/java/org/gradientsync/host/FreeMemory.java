package org.gradientsync.host;

import java.io.IOException;
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

  private static final int LOOKS = 10;
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
    long available = read("MemAvailable:");
    if (bytes > available - SPARE) {
      throw new IOException(
          "the machine has too little memory left: bytes=" + bytes + ", available=" + available);
    }
  }

  /**
   * Whether the machine has that much left for ordinary memory, or has it once the garbage
   * collector has freed that of closed buffers.
   */
  static boolean has(long bytes) {
    if (bytes < MUCH || bytes <= left()) {
      return true;
    }
    System.gc();
    for (int look = 0; look < LOOKS && bytes > left(); look++) {
      LockSupport.parkNanos(LOOK_NANOS); // as it is freed a little later
    }
    return bytes <= left();
  }

  /** What is left for ordinary memory, in bytes; very much if that cannot be found out. */
  static long left() {
    long available = read("MemAvailable:");
    long swap = read("SwapFree:");
    return available > Long.MAX_VALUE - swap ? Long.MAX_VALUE : available + swap;
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
