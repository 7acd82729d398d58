package org.gradientsync.test.example;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks.RankTask;

/** Threads of one JVM that are ranks, and the queues between them. */
final class QueueJob {
  private record Place(int sender, int receiver, int tag) {}

  final int size;
  final Map<Long, QueueReducer.Board> boards = new ConcurrentHashMap<>();
  private final Map<Place, Queue<QueueTransport.Entry>> queues = new ConcurrentHashMap<>();
  private final boolean[] dead;
  private Throwable failure; // of the first rank that failed

  QueueJob(int size) {
    this.size = size;
    dead = new boolean[size];
  }

  /** The messages that wait for the other side, oldest first; guarded by its own lock. */
  Queue<QueueTransport.Entry> queue(int sender, int receiver, int tag) {
    return queues.computeIfAbsent(new Place(sender, receiver, tag), place -> new ArrayDeque<>());
  }

  synchronized boolean isAlive(int rank) {
    return !dead[rank];
  }

  private synchronized void died(int rank, Throwable cause) {
    dead[rank] = true;
    failure = failure == null ? cause : failure;
  }

  /** Runs a task on each rank, and throws what the first one that fails has thrown. */
  void run(UnaryOperator<GradientSync.Builder> options, RankTask task) {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int rank = i;
      threads.add(new Thread(() -> run(rank, options, task), "rank-" + rank));
    }
    threads.forEach(Thread::start);
    try {
      for (Thread thread : threads) {
        thread.join();
      }
    } catch (InterruptedException e) {
      threads.forEach(Thread::interrupt);
      Thread.currentThread().interrupt();
    }
    if (failure != null) {
      throw new GradientSyncException("a rank failed: " + failure, failure);
    }
  }

  private void run(int rank, UnaryOperator<GradientSync.Builder> options, RankTask task) {
    QueueLauncher.OF_THREAD.set(new QueueTransport(this, rank));
    try (GradientSync sync = options.apply(GradientSync.builder()).create()) {
      task.run(sync);
    } catch (Throwable e) {
      died(rank, e);
    }
  }
}
