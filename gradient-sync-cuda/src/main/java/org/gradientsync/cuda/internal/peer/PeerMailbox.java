package org.gradientsync.cuda.internal.peer;

import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaException;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.internal.collectives.Agreement;
import org.gradientsync.spi.Resources;

/** This rank's mailbox, in which the others write, and theirs as they are mapped here. */
final class PeerMailbox implements AutoCloseable {
  private final Gpu gpu;
  private final PeerUnmapFlags unmapFlags;
  private final PeerLayout layout;
  private final long own;
  private final PeerMemory.Mapped[] all;

  /**
   * Allocates it and maps the others'. Collective.
   *
   * @param memory closed if this fails
   * @throws UnavailableException on all ranks if one of them cannot
   */
  PeerMailbox(GpuStream stream, PeerMemory memory, PeerUnmapFlags unmapFlags, PeerLayout layout) {
    gpu = stream.gpu();
    this.unmapFlags = unmapFlags;
    this.layout = layout;
    long address = 0;
    String reason = "";
    try {
      address = stream.allocateZeroed(layout.bytes());
    } catch (CudaException e) {
      reason = e.getMessage();
    }
    own = address;
    try {
      Agreement.requireAll(memory.communicator(), reason);
      all = memory.share(own);
      if (all == null) {
        throw new UnavailableException("a rank cannot map another rank's GPU memory");
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(
          e,
          memory, // which may have mapped some ranks' memory already
          unmapFlags::setAllUnmapped,
          own == 0 ? null : () -> gpu.memory().freeOnce(own, unmapFlags.areAllUnmapped()));
      throw e;
    }
  }

  PeerLayout layout() {
    return layout;
  }

  /** Where a rank's mailbox begins. */
  long of(int rank) {
    return all[rank].address();
  }

  /** Frees this rank's, once the others have unmapped it; which their flags show. */
  @Override
  public void close() {
    gpu.memory().freeOnce(own, unmapFlags.areAllUnmapped());
  }
}
