package org.gradientsync.core.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.gradientsync.core.backend.HostBuffers;

/**
 * The memory that the machine and this process's control groups have left. Linux overcommits
 * memory, and kills processes when they use it. So requests that are too large are refused first.
 */
final class FreeMemory {
  static final FreeMemory OF_THIS_MACHINE = new FreeMemory(Path.of("/"));

  /** Requests of this size or more are always checked. */
  static final long LARGE_BYTES = 64L << 20;

  private static final long GROWTH = 8L << 20; // smaller changes are noise
  private static final long STILL_NANOS = 500_000_000;
  private static final long PAUSE_NANOS = 20_000_000;
  private static final long MAX_SPARE = 256L << 20; // for other processes
  private static final int SPARE_PART = 8; // of a small machine or group
  private static final int UNCHECKED_PART = 32;
  private static final long UNKNOWN = Long.MAX_VALUE;

  private final Path meminfo;
  private final CgroupMemory groups;
  private final AtomicLong unchecked = new AtomicLong(); // bytes that may be taken without a check

  /**
   * @param root the root of the file system
   */
  FreeMemory(Path root) {
    meminfo = root.resolve("proc/meminfo");
    groups = new CgroupMemory(root);
  }

  /**
   * Available memory.
   *
   * @param bytes of which a part is spared
   * @param total the total, used and unused
   * @param owner for messages
   * @param advice what users can do if there is too little
   */
  private record Left(long bytes, long total, String owner, String advice) {
    boolean allows(long wanted) {
      return wanted <= bytes - (wanted < LARGE_BYTES ? spare() / 4 : spare());
    }

    long spare() {
      return Math.min(MAX_SPARE, total / SPARE_PART);
    }
  }

  /**
   * Refuses a request for which a memory file system, the machine or a control group has no room.
   */
  void require(long bytes, Path folder) throws IOException {
    if (!mustCheck(bytes)) {
      return;
    }
    FileStore store = Files.getFileStore(folder);
    long free = store.getUsableSpace();
    if (bytes > free && store.getTotalSpace() > 0) { // 0 means no limit
      throw new IOException(
          "the file system is full: folder=" + folder + ", bytes=" + bytes + ", free=" + free);
    }
    requireLeft(bytes);
  }

  /**
   * Allocates the first part of ordinary memory if there is room for the whole. One thread at a
   * time, so that the next one sees what is taken.
   *
   * @throws IOException if there is no room
   * @throws OutOfMemoryError if the JVM's limit is reached
   */
  ByteBuffer allocate(int bytes, long whole) throws IOException {
    if (!mustCheck(whole)) {
      return HostBuffers.allocate(bytes);
    }
    synchronized (this) {
      if (mustCheck(whole)) { // another thread may have checked meanwhile
        requireLeft(whole);
      }
      return HostBuffers.allocate(bytes);
    }
  }

  /** Small requests are checked now and then, and more often when little memory is left. */
  private boolean mustCheck(long bytes) {
    return bytes >= LARGE_BYTES || unchecked.addAndGet(-bytes) < 0;
  }

  /**
   * If there is too little, checks again after deleting the files of killed processes, and while
   * the garbage collector frees the memory of closed buffers.
   */
  private void requireLeft(long bytes) throws IOException {
    Left left = left();
    unchecked.set(Math.min(LARGE_BYTES, left.bytes / UNCHECKED_PART)); // other ranks allocate, too
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
        "%s has too little memory left: bytes=%s, available=%s%s"
            .formatted(left.owner, bytes, left.bytes, left.advice));
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

  /** A value of /proc/meminfo in bytes; the maximum if it cannot be read. */
  private long read(String name) {
    try (Stream<String> lines = Files.lines(meminfo)) {
      return lines
          .filter(line -> line.startsWith(name))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
          .findFirst()
          .orElse(UNKNOWN);
    } catch (IOException | RuntimeException e) {
      return UNKNOWN; // not Linux, or not readable
    }
  }
}
