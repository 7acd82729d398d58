package org.gradientsync.internal.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * How much memory the machine and this process's control groups have left. Linux gives more than
 * there is, and ends processes when they use it; so what is too large is refused before.
 */
final class FreeMemory {
  static final FreeMemory OF_THIS_MACHINE = new FreeMemory(Path.of("/"));

  /** From how many bytes on it is always worth a look. */
  static final long LARGE_BYTES = 64L << 20;

  private static final long GROWTH = 8L << 20; // less is other programs' coming and going
  private static final long STILL_NANOS = 500_000_000;
  private static final long PAUSE_NANOS = 20_000_000;
  private static final long MAX_SPARE = 256L << 20; // for everybody else
  private static final int SPARE_PART = 8; // of a small machine or group
  private static final int UNCHECKED_PART = 32;
  private static final long UNKNOWN = Long.MAX_VALUE;

  private final Path meminfo;
  private final CgroupMemory groups;
  private final AtomicLong unchecked = new AtomicLong(); // bytes that may be taken without a look

  /**
   * Memory.
   *
   * @param root the root of the file system
   */
  FreeMemory(Path root) {
    meminfo = root.resolve("proc/meminfo");
    groups = new CgroupMemory(root);
  }

  /**
   * Memory that can be taken.
   *
   * @param bytes of which a part should be spared
   * @param total of which this is the rest
   * @param owner says who has it
   * @param advice what to do when it is too little
   */
  private record Left(long bytes, long total, String owner, String advice) {
    boolean allows(long wanted) {
      return wanted <= bytes - (wanted < LARGE_BYTES ? spare() / 4 : spare());
    }

    long spare() {
      return Math.min(MAX_SPARE, total / SPARE_PART);
    }
  }

  /** Refuses more than a file system in memory, the machine or a control group has room for. */
  void require(long bytes, Path folder) throws IOException {
    if (!mustCheck(bytes)) {
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
   * Takes the first bytes of a piece of ordinary memory, if there is room for the whole. Only one
   * thread at a time, so that the next one sees what is taken.
   *
   * @throws IOException if there is not
   * @throws OutOfMemoryError if the JVM's limit is in the way
   */
  ByteBuffer allocate(int bytes, long whole) throws IOException {
    if (!mustCheck(whole)) {
      return HostBuffers.allocate(bytes);
    }
    synchronized (this) {
      if (mustCheck(whole)) { // still: another thread may just have looked
        requireLeft(whole);
      }
      return HostBuffers.allocate(bytes);
    }
  }

  /** Small pieces are looked at now and then, and the more often the less is left. */
  private boolean mustCheck(long bytes) {
    return bytes >= LARGE_BYTES || unchecked.addAndGet(-bytes) < 0;
  }

  /**
   * Also looks again, without what killed processes have left, and while the garbage collector
   * frees the memory of closed buffers.
   */
  private void requireLeft(long bytes) throws IOException {
    Left left = left();
    unchecked.set(
        Math.min(LARGE_BYTES, left.bytes / UNCHECKED_PART)); // other ranks take theirs, too
    if (left.allows(bytes)) {
      return;
    }
    SharedFiles.deleteStaleFiles();
    System.gc();
    long most = left.bytes;
    long grown = System.nanoTime();
    while (System.nanoTime() - grown < STILL_NANOS) {
      LockSupport.parkNanos(PAUSE_NANOS);
      left = left();
      if (left.allows(bytes)) {
        return;
      }
      if (left.bytes > most + GROWTH) {
        most = left.bytes;
        grown = System.nanoTime();
      }
    }
    throw new IOException(
        left.owner
            + " has too little memory left: bytes="
            + bytes
            + ", available="
            + left.bytes
            + left.advice);
  }

  /** Of the machine or of a control group, whichever has less. */
  private Left left() {
    long available = read("MemAvailable:");
    long swap = read("SwapFree:");
    Left machine =
        new Left(
            available == UNKNOWN || swap == UNKNOWN ? available : available + swap,
            read("MemTotal:"),
            "the machine",
            "");
    return groups
        .least(swap)
        .filter(group -> group.bytes() < machine.bytes)
        .map(
            group ->
                new Left(
                    group.bytes(),
                    group.limit(),
                    "this process's control group",
                    ", limit="
                        + group.limit()
                        + ", file="
                        + group.file()
                        + "; close buffers, or give the container or batch job more memory"))
        .orElse(machine);
  }

  /** A line of the kernel's, in bytes; very much if it cannot be read. */
  private long read(String name) {
    try (Stream<String> lines = Files.lines(meminfo)) {
      return lines
          .filter(line -> line.startsWith(name))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
          .findFirst()
          .orElse(UNKNOWN);
    } catch (IOException | RuntimeException e) {
      return UNKNOWN; // not Linux, or not to be read
    }
  }
}
