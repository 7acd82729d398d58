package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.cuda.internal.driver.CudaApi;

/** A prepared launch of a kernel that has {@code Arguments} of protocol.cuh. */
final class PeerLaunch {
  // The offsets in Arguments of protocol.cuh.
  private static final int MAILBOXES = 0;
  private static final int BUFFERS = MAILBOXES + PeerLayout.MAX_RANKS * Long.BYTES;
  private static final int STAGING = BUFFERS + PeerLayout.MAX_RANKS * Long.BYTES;
  private static final int REPORT = STAGING + PeerLayout.MAX_RANKS * Long.BYTES;
  private static final int COUNT = REPORT + Long.BYTES;
  private static final int STRIDE = COUNT + Long.BYTES;
  private static final int TAG = STRIDE + Long.BYTES;
  private static final int TIMEOUT = TAG + Long.BYTES;
  private static final int RANK = TIMEOUT + Long.BYTES;
  private static final int RANKS = RANK + Integer.BYTES;
  private static final int BATCHES = RANKS + Integer.BYTES;
  private static final int ALIGNED = BATCHES + Integer.BYTES;
  private static final int OP = ALIGNED + Integer.BYTES;
  private static final int ROOT = OP + Integer.BYTES;
  private static final int FOUND = ROOT + Integer.BYTES;
  private static final int FIRST = FOUND + Long.BYTES;
  private static final int LOCAL = FIRST + Long.BYTES;
  private static final int BYTES = LOCAL + Long.BYTES;

  private final CudaApi api;
  private final CUfunction function;
  private final int[] grid;
  private final int[] block;
  private final ByteBuffer memory = HostBuffers.allocate(BYTES);
  private final Pointer arguments;

  PeerLaunch(CudaApi api, CUfunction function, PeerAlgorithm algorithm, int blocks) {
    this(api, function, algorithm.threads, blocks);
  }

  PeerLaunch(CudaApi api, CUfunction function, int threads, int blocks) {
    this.api = api;
    this.function = function;
    grid = new int[] {blocks, 1, 1};
    block = new int[] {threads, 1, 1};
    arguments = api.arguments(memory, new int[] {0});
  }

  PeerLaunch mailboxes(PeerMailbox mailbox, PeerAlgorithm algorithm, int rank, int ranks) {
    PeerLayout layout = mailbox.layout();
    return mailboxes(mailbox, layout.offset(algorithm), layout.stride(algorithm), rank, ranks);
  }

  /** As above, for a given part of the mailboxes. */
  PeerLaunch mailboxes(PeerMailbox mailbox, long offset, long stride, int rank, int ranks) {
    for (int peer = 0; peer < ranks; peer++) {
      memory.putLong(MAILBOXES + peer * Long.BYTES, mailbox.of(peer));
      memory.putLong(STAGING + peer * Long.BYTES, mailbox.of(peer) + offset);
    }
    memory.putLong(STRIDE, stride);
    memory.putInt(RANK, rank);
    memory.putInt(RANKS, ranks);
    return this;
  }

  /**
   * Sets each rank's address of the elements; 0 for ranks whose buffers the kernel does not access.
   */
  PeerLaunch elements(long[] addresses, long count) {
    int aligned = 0;
    for (int peer = 0; peer < addresses.length; peer++) {
      memory.putLong(BUFFERS + peer * Long.BYTES, addresses[peer]);
      aligned |= addresses[peer] % PeerLayout.VECTOR == 0 ? 1 << peer : 0;
    }
    memory.putLong(COUNT, count);
    memory.putInt(ALIGNED, aligned);
    return this;
  }

  /**
   * Sets this rank's output or, of a kernel that writes into others', its input, or the table of
   * parts; 0 if none.
   */
  PeerLaunch local(long address) {
    memory.putLong(LOCAL, address);
    return this;
  }

  /** Sets this rank's elements of a message, and the blocks that carry it. Allocates nothing. */
  void message(int rank, long address, long bytes, int blocks) {
    memory.putLong(BUFFERS + rank * Long.BYTES, address);
    memory.putLong(COUNT, bytes);
    grid[0] = blocks;
  }

  PeerLaunch waiting(PeerReport report, long timeoutNanos) {
    memory.putLong(REPORT, report.deviceAddress());
    memory.putLong(TIMEOUT, timeoutNanos);
    return this;
  }

  /**
   * Sets where a kernel that checks for NaN and infinities writes its findings.
   *
   * @param found the device address
   * @param first the index of this launch's first element in the whole buffer
   */
  PeerLaunch checkingFinite(long found, long first) {
    memory.putLong(FOUND, found);
    memory.putLong(FIRST, first);
    return this;
  }

  PeerLaunch call(int tag, int op, int root, int batches) {
    memory.putLong(TAG, tag);
    memory.putInt(OP, op);
    memory.putInt(ROOT, root);
    memory.putInt(BATCHES, batches);
    return this;
  }

  int blocks() {
    return grid[0];
  }

  void enqueue(CUstream stream) {
    api.launch(function, grid, block, 0, stream, arguments);
  }
}
