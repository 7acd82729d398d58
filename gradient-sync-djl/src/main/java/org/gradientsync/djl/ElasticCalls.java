package org.gradientsync.djl;

import ai.djl.ndarray.NDArray;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the collective operations of a training, and in an elastic one goes on when ranks are lost.
 *
 * <p>All ranks make the same operations in the same order, and each operation needs all ranks. So
 * of the ranks that are left, none has finished more than one operation more than another. Each
 * keeps the results of its last operation: those that are behind take them over, and then update
 * the model as the others did. An operation that no rank has finished is repeated by those that are
 * left.
 */
class ElasticCalls implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ElasticCalls.class);
  private static final int MOST_ROUNDS = 3;

  private final GradientSync first;
  private final Kept inputs = new Kept();
  private final Kept results = new Kept();
  private GradientSync sync;
  private Change change; // null if not elastic
  private long finished;

  /** What follows the ranks that are left. */
  interface Change {
    /** Closes what belongs to the old sync. */
    void end();

    /** Takes note of the new sync. */
    void begin();
  }

  /** A copy of what an operation reads, or of its results. */
  private static final class Kept {
    private double[] words = {};
    private List<NDArray> arrays = List.of();
    private List<NDArray> copies = List.of();

    void take(double[] newWords, List<NDArray> newArrays) {
      words = newWords.clone();
      if (newArrays == arrays) {
        for (int i = 0; i < copies.size(); i++) {
          arrays.get(i).copyTo(copies.get(i));
        }
        return;
      }
      copies.forEach(NDArray::close);
      arrays = newArrays;
      copies = newArrays.stream().map(NDArray::duplicate).toList();
    }

    /** Into the arrays of which this is a copy. */
    void restore(double[] target) {
      System.arraycopy(words, 0, target, 0, words.length);
      for (int i = 0; i < copies.size(); i++) {
        copies.get(i).copyTo(arrays.get(i));
      }
    }
  }

  ElasticCalls(GradientSync sync) {
    first = Objects.requireNonNull(sync, "sync");
    this.sync = sync;
  }

  /** Goes on when ranks are lost, or with null does not. */
  void elastic(Change newChange) {
    change = newChange;
  }

  boolean isElastic() {
    return change != null;
  }

  /** Of the ranks that take part now. */
  GradientSync sync() {
    return sync;
  }

  /**
   * Makes a collective operation. If it throws a {@link RankLostException}, it is repeated with the
   * same inputs, or gets the results of ranks that have finished it.
   *
   * @param words what it reads and overwrites with its results
   * @param memory gives arrays that it reads and overwrites with its results
   * @param operation uses {@link #sync}, and waits for its results
   */
  void run(double[] words, Supplier<List<NDArray>> memory, Runnable operation) {
    if (change == null) {
      operation.run();
      return;
    }
    List<NDArray> arrays = memory.get();
    inputs.take(words, arrays);
    RankLostException loss = null;
    int rounds = 0; // that failed with the same ranks
    for (boolean done = false; !done; ) {
      if (loss != null) {
        int size = sync.size();
        goOn();
        rounds = sync.size() < size ? 0 : rounds + 1;
      }
      try {
        if (loss == null) {
          operation.run();
        } else if (!takeOver(words, arrays)) {
          inputs.restore(words);
          operation.run();
        }
        done = true;
      } catch (RankLostException e) {
        loss = e;
        log.info("rank {}: {}", sync.rank(), e.getMessage());
        if (rounds == MOST_ROUNDS) {
          throw e; // nobody is lost, and it fails each time
        }
      }
    }
    results.take(words, arrays);
    finished++;
  }

  private void goOn() {
    try {
      change.end();
    } catch (GradientSyncException e) {
      log.debug("rank {}: the lost rank's calls have failed", sync.rank(), e);
    }
    sync = sync.survivors();
    change.begin();
  }

  /**
   * After a loss: ranks that have finished an operation more give its results to the others.
   * Returns whether this rank got them.
   */
  private boolean takeOver(double[] words, List<NDArray> arrays) {
    Communicator ranks = sync.communicator();
    long[] all = new long[sync.size()];
    ranks.allGather(LongBuffer.wrap(new long[] {finished}), LongBuffer.wrap(all));
    int root = 0;
    for (int rank = 0; rank < all.length; rank++) {
      root = all[rank] > all[root] ? rank : root;
    }
    boolean isBehind = finished < all[root];
    if (isBehind) {
      broadcast(ranks, root, words, arrays, true);
    } else if (Arrays.stream(all).anyMatch(other -> other < finished)) {
      broadcast(ranks, root, results.words, results.copies, false);
    }
    return isBehind;
  }

  private static void broadcast(
      Communicator ranks, int root, double[] words, List<NDArray> arrays, boolean takes) {
    double[] newWords = words.clone();
    ranks.broadcast(DoubleBuffer.wrap(newWords), root);
    if (takes) {
      System.arraycopy(newWords, 0, words, 0, words.length);
    }
    for (NDArray array : arrays) {
      ByteBuffer elements = HostCopy.read("of the last operation", array);
      ranks.broadcast(elements, root);
      if (takes) {
        HostCopy.write(elements, array);
      }
    }
  }

  /** Frees the copies, and closes the sync unless it is the program's own. */
  @Override
  public void close() {
    inputs.take(new double[0], List.of());
    results.take(new double[0], List.of());
    if (sync != first) {
      sync.close();
    }
  }
}
