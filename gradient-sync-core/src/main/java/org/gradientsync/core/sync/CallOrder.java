package org.gradientsync.core.sync;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.gradientsync.PendingAverage;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.spi.CollectiveCall;

/**
 * Keeps a sync's calls in one order. A call of the program waits until the communication thread is
 * idle. Calls of a group are recorded. Calls of a closed sync, of a listener and of a hook throw.
 */
final class CallOrder {
  private final int rank;
  private final BiConsumer<String, Throwable> giveUp;
  private final Observer observer;
  private final ThreadLocal<List<CollectiveCall>> recording = new ThreadLocal<>();
  private final PendingAverages pending = new PendingAverages();
  private final ThreadLocal<Runnable> hook = new ThreadLocal<>(); // that this thread runs, or null
  private volatile CommunicationThread thread; // or null
  private volatile boolean closed;

  /**
   * @param giveUp breaks the sync with a reason and its cause
   */
  CallOrder(int rank, BiConsumer<String, Throwable> giveUp, Observer observer) {
    this.rank = rank;
    this.giveUp = giveUp;
    this.observer = observer;
  }

  /** The thread that averages buckets, started by its first use. */
  synchronized CommunicationThread thread() {
    requireOpen();
    if (thread == null) {
      thread = new CommunicationThread(rank, giveUp);
    }
    return thread;
  }

  boolean isClosed() {
    return closed;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("sync is closed: rank=" + rank);
    }
  }

  /** Waits for the turn of a call that cannot be a part of a group. */
  void awaitTurn() {
    requireOpen();
    awaitThread();
  }

  /** As above, also on a closed sync. */
  void awaitThread() {
    requireProgram();
    awaitOthers();
  }

  private void awaitOthers() {
    CommunicationThread running = thread;
    if (running != null && !running.isCurrent()) {
      try {
        running.awaitAll();
      } catch (RuntimeException | Error e) {
        pending.seen();
        throw e;
      }
      pending.awaitAll();
    }
  }

  /** Throws if a listener, a hook, or the calls of a group make this call. */
  void requireProgram() {
    observer.requireNoListener(rank);
    requireNoHook();
    requireNotRecording();
  }

  void requireNotRecording() {
    if (isRecording()) {
      throw new IllegalStateException(
          "this call cannot be a part of a group: rank=" + rank + "; make it outside of grouped");
    }
  }

  /** Starts an average on the communication thread. */
  PendingAverage start(Runnable average) {
    requireOpen();
    observer.requireNoListener(rank);
    requireNoHook();
    return pending.start(thread(), average);
  }

  /** Runs a hook of buckets, whose calls would wait for the hook itself. */
  void runHook(Runnable call) {
    hook.set(call);
    try {
      call.run();
    } finally {
      hook.remove();
    }
  }

  /** Throws if this thread runs a hook. */
  void requireNoHook() {
    if (hook.get() != null) {
      throw new IllegalStateException(
          "a hook calls the sync of its buckets, or the buckets: rank="
              + rank
              + "; in the hook, call the bucket's own sync()");
    }
  }

  /** Waits for the turn of a call, unless it is to be recorded. Returns whether it is. */
  boolean begin() {
    boolean records = isRecording();
    requireOpen();
    observer.requireNoListener(rank);
    if (!records) {
      requireNoHook();
      awaitOthers();
    }
    return records;
  }

  /** Whether this thread is making the calls of a group. */
  boolean isRecording() {
    return recording.get() != null;
  }

  /** Adds a call to the group whose calls this thread is making. */
  void record(CollectiveCall call) {
    recording.get().add(call);
  }

  /** Returns the calls that are recorded meanwhile. */
  List<CollectiveCall> recorded(Runnable calls) {
    List<CollectiveCall> recorded = new ArrayList<>();
    recording.set(recorded);
    try {
      calls.run();
    } finally {
      recording.remove();
    }
    return recorded;
  }

  /** Throws what an average in the background has thrown and no call; null if there is none. */
  AutoCloseable unseenFailure() {
    return pending.unseen(rank);
  }

  /** Ends the communication thread, after which the caller waits for the other calls. */
  void closeThread() {
    CommunicationThread running = thread;
    if (running != null) {
      running.close();
    }
  }

  /** From now on, calls throw. */
  void close() {
    closed = true;
  }
}
