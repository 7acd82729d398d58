package org.gradientsync.cuda.internal.peer;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.BooleanSupplier;
import org.gradientsync.core.matching.NodeMemory;

/**
 * Flags by which each rank shows which registrations' memory it has unmapped, so that the owners
 * may free it. Each rank has a page that only it writes: a word that shows that it has closed, the
 * part of {@link PeerProgress}, and a bit for each registration.
 */
final class PeerUnmapFlags {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final int CLOSED = 0;
  private static final int FIRST = PeerProgress.BYTES;

  /** The size of a rank's page. */
  static final int BYTES = FIRST + (PeerTag.MAX_REGISTRATIONS / Long.SIZE + 1) * Long.BYTES;

  private final NodeMemory memory;
  private final int rank;
  private final int ranks;

  PeerUnmapFlags(NodeMemory memory, int rank, int ranks) {
    this.memory = memory;
    this.rank = rank;
    this.ranks = ranks;
  }

  /** Shows that this rank has unmapped a registration's memory. */
  void setUnmapped(int registration) {
    int at = word(registration);
    long before = (long) WORD.get(memory.of(rank), at);
    WORD.setRelease(memory.of(rank), at, before | 1L << registration);
  }

  /** Shows that this rank has unmapped everything. */
  void setAllUnmapped() {
    WORD.setRelease(memory.of(rank), CLOSED, 1L);
  }

  /** Whether all ranks have unmapped a registration's memory. */
  BooleanSupplier isUnmapped(int registration) {
    return () -> all(word(registration), 1L << registration);
  }

  /** Whether all ranks have unmapped everything. */
  BooleanSupplier areAllUnmapped() {
    return () -> all(CLOSED, 1);
  }

  private boolean all(int at, long bit) {
    for (int peer = 0; peer < ranks; peer++) {
      ByteBuffer page = memory.of(peer);
      boolean ended = ((long) WORD.getAcquire(page, at) & bit) != 0;
      if (!ended && (long) WORD.getAcquire(page, CLOSED) == 0) {
        return false;
      }
    }
    return true;
  }

  private static int word(int registration) {
    return FIRST + registration / Long.SIZE * Long.BYTES;
  }
}
