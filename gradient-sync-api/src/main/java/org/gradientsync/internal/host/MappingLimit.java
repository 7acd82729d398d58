package org.gradientsync.internal.host;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * How many mappings of memory this process may still make. The JVM needs some for threads and its
 * garbage collector, and aborts where Linux refuses them.
 */
final class MappingLimit {
  static final MappingLimit OF_THIS_PROCESS = new MappingLimit(Path.of("/"));

  private static final long MAX_SPARE = 4096; // for the JVM
  private static final int SPARE_PART = 8;
  private static final int UNCHECKED_PART = 8; // what else makes mappings is not counted
  private static final int ATTEMPTS = 10; // while the garbage collector unmaps
  private static final long PAUSE_NANOS = 50_000_000;

  private final Path limit;
  private final Path maps;
  private final AtomicLong unchecked = new AtomicLong(); // that may be made without a look

  /**
   * MappingLimit.
   *
   * @param root the root of the file system
   */
  MappingLimit(Path root) {
    limit = root.resolve("proc/sys/vm/max_map_count");
    maps = root.resolve("proc/self/maps");
  }

  /**
   * Refuses more mappings than there may be.
   *
   * @param more how many are to be made now
   * @throws TooManyMappingsException if those are too many
   */
  void require(int more) throws TooManyMappingsException {
    if (unchecked.addAndGet(-more) < 0) {
      check(more);
    }
  }

  private synchronized void check(int more) throws TooManyMappingsException {
    long most;
    long count;
    try {
      most = limit();
      long allowed = most - Math.min(MAX_SPARE, most / SPARE_PART) - more;
      count = count();
      for (int attempt = 0; attempt < ATTEMPTS && count > allowed; attempt++) {
        if (attempt == 0) {
          System.gc(); // unmapping closed buffers is left to it
        }
        LockSupport.parkNanos(PAUSE_NANOS);
        count = count();
      }
      if (count <= allowed) {
        unchecked.set((allowed - count) / UNCHECKED_PART);
        return;
      }
    } catch (IOException | RuntimeException e) {
      unchecked.set(MAX_SPARE); // not Linux, or not to be read
      return;
    }
    unchecked.set(0);
    throw new TooManyMappingsException(
        "this process has too many mappings of memory: mappings="
            + count
            + ", vm.max_map_count="
            + most
            + "; close buffers, make one large buffer and take slices of it, or raise the limit: "
            + "sysctl -w vm.max_map_count="
            + 4 * most);
  }

  /** The limit, read at once: the rest of a part would be empty. */
  private long limit() throws IOException {
    byte[] bytes = new byte[64];
    try (InputStream in = Files.newInputStream(limit)) {
      int read = in.read(bytes);
      return Long.parseLong(new String(bytes, 0, read, StandardCharsets.US_ASCII).strip());
    }
  }

  /** The lines of the kernel's list. */
  private long count() throws IOException {
    long lines = 0;
    byte[] bytes = new byte[1 << 16];
    try (InputStream in = Files.newInputStream(maps)) {
      for (int read = in.read(bytes); read >= 0; read = in.read(bytes)) {
        for (int i = 0; i < read; i++) {
          if (bytes[i] == '\n') {
            lines++;
          }
        }
      }
    }
    return lines;
  }
}
