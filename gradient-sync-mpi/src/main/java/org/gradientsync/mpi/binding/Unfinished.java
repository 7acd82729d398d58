package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The memory of messages that were given up in the middle. MPI may still use it, so it must not be
 * collected. Seldom: short ones are on their way at once.
 */
final class Unfinished {
  private static final Deque<ByteBuffer> KEPT = new ArrayDeque<>();

  private Unfinished() {}

  static synchronized void keep(ByteBuffer memory) {
    KEPT.add(memory);
  }
}
