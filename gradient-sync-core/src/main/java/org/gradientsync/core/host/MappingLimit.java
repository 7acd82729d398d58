package org.gradientsync.core.host;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The number of memory mappings that this process may still create. The JVM needs some for threads
 * and its garbage collector, and aborts if Linux refuses them.
 */
final class MappingLimit {
  static final MappingLimit OF_THIS_PROCESS = new MappingLimit(Path.of("/"));

  private static final long MAX_SPARE = 4096; // for the JVM
  private static final int SPARE_PART = 8;
  private static final int UNCHECKED_PART = 8; // mappings created elsewhere are not counted
  private static final int ATTEMPTS = 10; // while the garbage collector unmaps
  private static final long PAUSE_NANOS = 50_000_000;

  private final Path limit;
  private final Path maps;
  private final AtomicLong unchecked =
      new AtomicLong(); // mappings that may be created without a check

  /**
   * @param root the root of the file system
   */
  MappingLimit(Path root) {
    limit = root.resolve("proc/sys/vm/max_map_count");
    maps = root.resolve("proc/self/maps");
  }

  /**
   * @param more the number of new mappings
   * @throws TooManyMappingsException if there would be too many
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
          System.gc(); // only the collector unmaps closed buffers
        }
        LockSupport.parkNanos(PAUSE_NANOS);
        count = count();
      }
      if (count <= allowed) {
        unchecked.set((allowed - count) / UNCHECKED_PART);
        return;
      }
    } catch (IOException | RuntimeException e) {
      unchecked.set(MAX_SPARE); // not Linux, or not readable
      return;
    }
    unchecked.set(0);
    throw new TooManyMappingsException(
        ("this process has too many mappings of memory: mappings=%s, vm.max_map_count=%s;"
                + " close buffers, make one large buffer and take slices of it, or raise the limit:"
                + " sysctl -w vm.max_map_count=%s")
            .formatted(count, most, 4 * most));
  }

  /** Reads the limit in one call: the file cannot be read in parts. */
  private long limit() throws IOException {
    byte[] bytes = new byte[64];
    try (InputStream in = Files.newInputStream(limit)) {
      int read = in.read(bytes);
      return Long.parseLong(new String(bytes, 0, read, StandardCharsets.US_ASCII).strip());
    }
  }

  /** The number of lines of the kernel's list. */
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
