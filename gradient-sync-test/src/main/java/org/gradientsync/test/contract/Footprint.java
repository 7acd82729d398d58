package org.gradientsync.test.contract;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.Stream;

/**
 * The resources that this process holds, to compare with an earlier measurement.
 *
 * @param heap bytes of the Java heap in use after a collection
 * @param resident bytes of resident memory
 * @param mappings memory mappings
 * @param descriptors open files
 * @param threads Java threads
 * @param nativeThreads all threads
 * @param sharedFiles files in /dev/shm that the library made in this process
 * @param device bytes of device memory in use
 */
record Footprint(
    long heap,
    long resident,
    long mappings,
    long descriptors,
    long threads,
    long nativeThreads,
    long sharedFiles,
    long device) {
  private static final int COLLECTIONS = 6;
  private static final int MOST_COLLECTIONS = 400;
  private static final Path SHARED = Path.of("/dev/shm");

  /**
   * Collects garbage until resident memory stops shrinking. A separate thread unmaps the memory of
   * collected objects, which can take a while.
   */
  static Footprint measure(LongSupplier device) {
    try {
      long least = Long.MAX_VALUE;
      for (int i = 0, unchanged = 0; i < MOST_COLLECTIONS && unchanged < COLLECTIONS; i++) {
        System.gc();
        Thread.sleep(50);
        long resident = status("VmRSS:");
        unchanged = resident < least - least / 200 ? 0 : unchanged + 1;
        least = Math.min(least, resident);
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    Runtime runtime = Runtime.getRuntime();
    return new Footprint(
        runtime.totalMemory() - runtime.freeMemory(),
        status("VmRSS:") << 10,
        lines(Path.of("/proc/self/maps")).size(),
        count(Path.of("/proc/self/fd"), ""),
        ManagementFactory.getThreadMXBean().getThreadCount(),
        status("Threads:"),
        Files.isDirectory(SHARED)
            ? count(SHARED, "gradient-sync-\\d+-" + ProcessHandle.current().pid() + "-.*")
            : 0,
        device.getAsLong());
  }

  /**
   * Returns what has grown by more than a limit. Each limit is less than one leak per sync.
   *
   * @param before an earlier measurement
   * @param syncs how many syncs were opened and closed since
   * @return one line for each, or none
   */
  List<String> grownSince(Footprint before, int syncs) {
    List<String> grown = new ArrayList<>();
    long halfMegabytes = syncs * (1L << 19);
    compare(grown, "Java heap, bytes", before.heap, heap, halfMegabytes / 4);
    compare(grown, "resident memory, bytes", before.resident, resident, halfMegabytes);
    if (!grown.isEmpty()) {
      for (String kind : List.of("RssAnon:", "RssFile:", "RssShmem:")) {
        grown.add(kind + " " + status(kind) + " KiB now");
      }
    }
    compare(grown, "mappings", before.mappings, mappings, syncs / 2);
    compare(grown, "open files", before.descriptors, descriptors, syncs / 4);
    compare(grown, "threads of Java", before.threads, threads, 4);
    compare(grown, "threads", before.nativeThreads, nativeThreads, syncs / 4);
    compare(grown, "files in /dev/shm", before.sharedFiles, sharedFiles, 0);
    compare(grown, "device memory, bytes", before.device, device, halfMegabytes);
    return grown;
  }

  private static void compare(List<String> grown, String what, long was, long is, long most) {
    if (is - was > most) {
      grown.add(what + ": before=" + was + ", after=" + is + ", allowed=" + most);
    }
  }

  private static long status(String field) {
    for (String line : lines(Path.of("/proc/self/status"))) {
      if (line.startsWith(field)) {
        return Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    throw new IllegalStateException("no " + field + " in /proc/self/status");
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static long count(Path folder, String pattern) {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(f -> pattern.isEmpty() || f.getFileName().toString().matches(pattern))
          .count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
