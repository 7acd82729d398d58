package org.gradientsync.elastic;

/**
 * The states that the ranks of a training can give to others. The highest kind is taken, and of
 * these the one after the most steps; so never that of a rank that has just joined, if others have
 * one.
 *
 * @param words for each rank the step after its state, or {@link ElasticTraining#NOTHING}, and its
 *     kind
 */
record RankStates(long[] words) {
  private static final long NEW = 0; // the rank's own, or not whole
  private static final long TRAINED = 1; // that of all, and of later steps

  /** A copy of several ranks' parts. */
  static final long COPY = 2;

  static long kind(boolean trained) {
    return trained ? TRAINED : NEW;
  }

  /** The rank whose state all take. */
  int root() {
    int root = 0;
    for (int rank = 1; rank < words.length / 2; rank++) {
      boolean better =
          kind(rank) > kind(root) || kind(rank) == kind(root) && step(rank) > step(root);
      root = better ? rank : root;
    }
    return root;
  }

  private long step(int rank) {
    return words[2 * rank];
  }

  private long kind(int rank) {
    return words[2 * rank + 1];
  }

  /** The step after the state that all take. */
  long newest() {
    return step(root());
  }

  /** Whether it is a copy. */
  boolean areCopies() {
    return kind(root()) == COPY;
  }

  /** Whether a rank has another state than the one that all take. */
  boolean isBehind(int rank) {
    return step(rank) != newest() || kind(rank) != kind(root());
  }

  boolean differ() {
    for (int rank = 0; rank < words.length / 2; rank++) {
      if (isBehind(rank)) {
        return true;
      }
    }
    return false;
  }
}
