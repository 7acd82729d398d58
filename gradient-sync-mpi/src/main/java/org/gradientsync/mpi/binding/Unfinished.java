package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The memory of sends that were given up before the other rank took them. MPI may still read it, so
 * it must not be collected. Happens only after a rank was lost.
 */
final class Unfinished {
  private static final Deque<ByteBuffer> KEPT = new ArrayDeque<>();

  private Unfinished() {}

  static synchronized void keep(ByteBuffer memory) {
    KEPT.add(memory);
  }
}
