package org.gradientsync.cuda.internal.peer;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * The buffers that are reduced as one: in their own memory, which the kernels find in a table, or,
 * if a rank cannot map them, in a copy.
 */
final class PeerParts implements AutoCloseable {
  /** As Part in chunks.cuh: each rank's address, the count, and two numbers of 32 bits. */
  private static final int ENTRY = PeerLayout.MAX_RANKS + 2;

  final DeviceBuffer[] buffers;
  private final CudaBuffer table; // or null
  private final DeviceBuffer[] places; // in a copy, or null
  private long batches;

  /**
   * Parts that all ranks have mapped.
   *
   * @param mapped of all ranks each part after the other
   */
  PeerParts(CudaDevice device, List<CudaBuffer> buffers, PeerMemory.Mapped[] mapped) {
    this.buffers = buffers.toArray(DeviceBuffer[]::new);
    places = null;
    LongBuffer entries = LongBuffer.allocate(buffers.size() * ENTRY);
    long most = PeerLayout.batchElements(buffers.get(0).type());
    int ranks = mapped.length / buffers.size();
    for (int i = 0; i < buffers.size(); i++) {
      long aligned = 0;
      for (PeerMemory.Mapped m : Arrays.asList(mapped).subList(i * ranks, (i + 1) * ranks)) {
        entries.put(i * ENTRY + m.rank(), m.address());
        aligned |= m.address() % PeerLayout.VECTOR == 0 ? 1L << m.rank() : 0;
      }
      long count = buffers.get(i).count();
      entries.put(i * ENTRY + PeerLayout.MAX_RANKS, count);
      entries.put(i * ENTRY + PeerLayout.MAX_RANKS + 1, aligned << Integer.SIZE | batches);
      batches += (count + most - 1) / most;
    }
    table =
        Unclosed.exempt(
            device.allocate(DataType.INT64, entries.capacity(), buffers.get(0).stream()));
    try {
      table.copyFromUnintercepted(entries);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, table);
      throw e;
    }
  }

  /** Parts that travel in a copy. */
  PeerParts(List<CudaBuffer> buffers, CudaBuffer copy) {
    this.buffers = buffers.toArray(DeviceBuffer[]::new);
    places = new DeviceBuffer[this.buffers.length];
    long first = 0;
    for (int i = 0; i < places.length; i++) {
      places[i] = copy.slice(first, this.buffers[i].count());
      first += this.buffers[i].count();
    }
    table = null;
  }

  /** The address of the table; 0 if there is a copy. */
  long table() {
    return table == null ? 0 : table.address();
  }

  /** The number of batches, of which each part's last may be filled in part. */
  long batches() {
    return batches;
  }

  void copyIn(CudaDevice device) {
    device.copyAll(buffers, places);
  }

  void copyOut(CudaDevice device) {
    device.copyAll(places, buffers);
  }

  @Override
  public void close() {
    Resources.closeAll(table);
  }
}
