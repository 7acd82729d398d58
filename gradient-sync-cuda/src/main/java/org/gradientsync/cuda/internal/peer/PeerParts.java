package org.gradientsync.cuda.internal.peer;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/** The table in which the kernels find the buffers that are reduced as one. */
final class PeerParts implements AutoCloseable {
  /** As Part in chunks.cuh: each rank's address, the count, and two numbers of 32 bits. */
  private static final int ENTRY = PeerLayout.MAX_RANKS + 2;

  private final int count;
  private final long batches;
  private final CudaBuffer table;

  /**
   * Makes the table on the buffers' stream.
   *
   * @param mapped of all ranks each buffer after the other
   */
  PeerParts(CudaDevice device, List<CudaBuffer> buffers, PeerMemory.Mapped[] mapped) {
    count = buffers.size();
    LongBuffer entries = LongBuffer.allocate(count * ENTRY);
    long most = PeerLayout.batchElements(buffers.get(0).type());
    int ranks = mapped.length / count;
    long first = 0; // batch of a part
    for (int i = 0; i < count; i++) {
      long aligned = 0;
      for (PeerMemory.Mapped m : Arrays.asList(mapped).subList(i * ranks, (i + 1) * ranks)) {
        entries.put(i * ENTRY + m.rank(), m.address());
        aligned |= m.address() % PeerLayout.VECTOR == 0 ? 1L << m.rank() : 0;
      }
      long elements = buffers.get(i).count();
      entries.put(i * ENTRY + PeerLayout.MAX_RANKS, elements);
      entries.put(i * ENTRY + PeerLayout.MAX_RANKS + 1, aligned << Integer.SIZE | first);
      first += (elements + most - 1) / most;
    }
    batches = first;
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

  long address() {
    return table.address();
  }

  int count() {
    return count;
  }

  /** The number of batches, of which each part's last may be filled in part. */
  long batches() {
    return batches;
  }

  @Override
  public void close() {
    table.close();
  }
}
