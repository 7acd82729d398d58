package org.gradientsync.tcp;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.gradientsync.GradientSync;

/** Ranks that are threads of this JVM, each with settings of its own. */
final class ThreadRanks {
  /** What a rank does. */
  interface Task<T> {
    T run(int rank, GradientSync.Builder builder) throws Exception;
  }

  private ThreadRanks() {}

  static GradientSync.Builder builder(int port, int rank, int size) {
    return GradientSync.builder()
        .device("host")
        .timeout(Duration.ofSeconds(60))
        .set("tcp.rank", Integer.toString(rank))
        .set("tcp.size", Integer.toString(size))
        .set("tcp.master", "127.0.0.1:" + port)
        .set("tcp.secret", "of the tests");
  }

  /** Runs a task on each rank, and returns what each has returned. */
  static <T> List<T> run(int port, int size, Task<T> task) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(size);
    try {
      List<Future<T>> futures = new ArrayList<>();
      for (int i = 0; i < size; i++) {
        int rank = i;
        futures.add(threads.submit(() -> task.run(rank, builder(port, rank, size))));
      }
      List<T> results = new ArrayList<>();
      for (Future<T> future : futures) {
        results.add(future.get(4, TimeUnit.MINUTES));
      }
      return results;
    } finally {
      threads.shutdownNow();
    }
  }
}
