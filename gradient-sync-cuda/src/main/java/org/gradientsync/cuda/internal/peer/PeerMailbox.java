package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.Agreement;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.GpuStream;
import org.gradientsync.spi.Resources;

/** This rank's mailbox, into which the other ranks write, and the mappings of their mailboxes. */
final class PeerMailbox implements AutoCloseable {
  private final Gpu gpu;
  private final PeerUnmapFlags unmapFlags;
  private final PeerLayout layout;
  private final long own;
  private final PeerMemory.Mapped[] all;

  /**
   * Allocates this rank's mailbox and maps the others. Collective.
   *
   * @param memory closed if this fails
   * @throws UnavailableException on all ranks if one of them fails
   */
  PeerMailbox(GpuStream stream, PeerMemory memory, PeerUnmapFlags unmapFlags, PeerLayout layout) {
    gpu = stream.gpu();
    this.unmapFlags = unmapFlags;
    this.layout = layout;
    long address = 0;
    String reason = "";
    try {
      address = stream.allocateZeroed(layout.bytes());
    } catch (DeviceException e) {
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
          memory, // may have mapped some ranks' memory already
          unmapFlags::setAllUnmapped,
          own == 0 ? null : () -> gpu.memory().freeOnce(own, unmapFlags.areAllUnmapped()));
      throw e;
    }
  }

  PeerLayout layout() {
    return layout;
  }

  /** The address of a rank's mailbox, as mapped here. */
  long of(int rank) {
    return all[rank].address();
  }

  /** Frees this rank's mailbox once the flags show that all ranks have unmapped it. */
  @Override
  public void close() {
    gpu.memory().freeOnce(own, unmapFlags.areAllUnmapped());
  }
}
