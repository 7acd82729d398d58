package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import org.gradientsync.core.host.HostBuffers;
import org.gradientsync.cuda.internal.driver.Gpu;

/**
 * The report that a kernel that could not finish leaves for the host, in page-locked memory, as
 * {@code Report} in {@code protocol.cuh}.
 */
final class PeerReport implements AutoCloseable {
  static final int NONE = 0;
  static final int MISMATCH = 1;
  static final int TIMED_OUT = 2;

  private static final int STOP = 0;
  private static final int FAILURE = 8;
  private static final int CALL = 16;
  private static final int WAITED = 32;
  private static final int HEADERS = 40;
  private static final int BYTES = HEADERS + PeerLayout.MAX_RANKS * Long.BYTES;

  private final Gpu gpu;
  private final ByteBuffer memory = HostBuffers.allocate(BYTES);

  PeerReport(Gpu gpu) {
    this.gpu = gpu;
    gpu.api().pageLock(memory);
  }

  long deviceAddress() {
    return gpu.api().deviceAddress(memory);
  }

  /** The kind of failure, or {@link #NONE}. Cheap, because each call checks it. */
  int failure() {
    return (int) memory.getLong(FAILURE);
  }

  /** The number of the call that failed. */
  long call() {
    return memory.getLong(CALL);
  }

  long waitedNanos() {
    return memory.getLong(WAITED);
  }

  /** The number of a rank's call; below {@link #call} if it has not begun that call. */
  long callOf(int rank) {
    return memory.getLong(HEADERS + rank * Long.BYTES) >>> PeerTag.BITS;
  }

  /** The {@linkplain PeerTag tag} of that call. */
  int tagOf(int rank) {
    return (int) memory.getLong(HEADERS + rank * Long.BYTES) & PeerTag.MASK;
  }

  /** Makes a waiting kernel end. */
  void stop() {
    memory.putLong(STOP, 1);
  }

  @Override
  public void close() {
    gpu.api().pageUnlock(memory);
  }
}
