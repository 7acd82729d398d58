package org.gradientsync.core.sync;

import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.SparseRows;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * Averages rows of tables: all ranks learn which rows any of them has, and average a dense buffer
 * of these. So each element has the bits that it has in the average of the whole table.
 */
final class SparseAverages implements AutoCloseable {
  private static final int HEADER = 3; // the size of the table, and the number of a rank's rows
  private static final int MOST_TOGETHER = 1 << 17; // indices of all ranks in one call

  private final GradientSync sync;
  private final GroupCommunicator communicator;
  private final BackendDevice device;
  private final CollectiveArguments arguments;
  private final KeptBuffers given;
  private final KeptBuffers tables;
  private final KeptBuffers sums;
  private final RowUnion rows = new RowUnion();
  private long[] sent = new long[HEADER];
  private long[] received;

  /** How many indices travel with the header; the same on all ranks. */
  private int room;

  SparseAverages(GradientSync sync, Selection.Choice choice) {
    this.sync = sync;
    communicator = choice.communicator();
    device = choice.device();
    arguments = new CollectiveArguments(choice.group().ranks(), device);
    given = new KeptBuffers(sync, DataType.FLOAT32);
    tables = new KeptBuffers(sync, DataType.INT32);
    sums = new KeptBuffers(sync, DataType.FLOAT32);
    received = new long[HEADER * communicator.size()];
  }

  /**
   * The rows that any rank has, in ascending order, with their averages, which are where this
   * rank's rows are. Collective.
   */
  synchronized SparseRows average(SparseRows own) {
    requireUsable(own);
    int width = own.width();
    long[][] all = new long[1][];
    communicator.compose(Origin.AVERAGE_ROWS, () -> all[0] = exchange(own));
    long[] union = all[0];
    int count = own.indices().length;
    long most = Math.max((long) union.length * width, (long) count + union.length + 1);
    if (most > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "the rows of all ranks do not fit an array: rows="
              + union.length
              + ", width="
              + width
              + ", rank="
              + communicator.rank()
              + "; average them in several parts, or the whole table");
    }
    DeviceBuffer source = own.buffer();
    if (source == null) {
      source = given.part(count * width);
      source.copyFrom(own.elements());
    }
    DeviceBuffer table = tables.part(count + union.length + 1);
    ((AbstractDeviceBuffer) table)
        .copyFromUnintercepted(IntBuffer.wrap(rows.table(), 0, count + union.length + 1));
    DeviceBuffer padded = sums.padded(union.length * width);
    DeviceBuffer sum = padded.slice(0, (long) union.length * width);
    device.sumRows(source, table, width, sum);
    sync.average(padded);
    if (own.buffer() != null) {
      return new SparseRows(own.tableRows(), width, union, sum);
    }
    float[] elements = new float[union.length * width];
    sum.copyTo(elements);
    return new SparseRows(own.tableRows(), width, union, elements);
  }

  /** Throws if rows in a buffer cannot be averaged. */
  private void requireUsable(SparseRows own) {
    DeviceBuffer buffer = own.buffer();
    if (buffer == null) {
      return;
    }
    arguments.requireOwn(buffer);
    if (device.streamOf(buffer) != device.stream() || sums.overlap(buffer)) {
      throw new IllegalArgumentException(
          "rows must be on the device's own stream, and no earlier average: buffer="
              + buffer
              + ", rank="
              + communicator.rank()
              + "; copy them to a buffer of your own");
    }
  }

  /**
   * Finds the union. One call of the communicator, if no rank has more indices than the calls
   * before had room for; otherwise one more for each rank that has some.
   */
  private long[] exchange(SparseRows own) {
    int block = HEADER + room;
    int count = own.indices().length;
    sent[0] = own.tableRows();
    sent[1] = own.width();
    sent[2] = count;
    System.arraycopy(own.indices(), 0, sent, HEADER, count <= room ? count : 0);
    communicator.allGather(LongBuffer.wrap(sent), LongBuffer.wrap(received));
    int total = 0;
    int most = 0;
    for (int at = 0; at < received.length; at += block) {
      if (received[at] != own.tableRows() || received[at + 1] != own.width()) {
        throw different(block);
      }
      total = Math.addExact(total, (int) received[at + 2]);
      most = Math.max(most, (int) received[at + 2]);
    }
    rows.begin(total);
    if (most <= room) {
      for (int at = 0; at < received.length; at += block) {
        rows.add(at + HEADER, (int) received[at + 2]);
      }
      return rows.find(received, communicator.rank() * block + HEADER, count);
    }
    long[] all = new long[total];
    int first = 0;
    int mine = 0;
    for (int rank = 0; rank < communicator.size(); rank++) {
      int some = (int) received[rank * block + 2];
      if (rank == communicator.rank()) {
        mine = first;
        System.arraycopy(own.indices(), 0, all, first, some);
      }
      if (some > 0) {
        communicator.broadcast(LongBuffer.wrap(all, first, some), rank);
      }
      first += some;
    }
    if (most <= MOST_TOGETHER / communicator.size()) {
      makeRoom(most);
    }
    rows.add(0, total);
    return rows.find(all, mine, count);
  }

  /** Lets as many indices, and some more, travel with the header from now on. */
  private void makeRoom(int count) {
    room = Math.min(count + count / 4, MOST_TOGETHER / communicator.size());
    sent = new long[HEADER + room];
    received = new long[sent.length * communicator.size()];
  }

  private MismatchedCallException different(int block) {
    StringBuilder text =
        new StringBuilder("the ranks average rows of different tables, rank=")
            .append(communicator.rank())
            .append(':');
    for (int peer = 0; peer < communicator.size(); peer++) {
      text.append("\n  rank ")
          .append(peer)
          .append(": tableRows=")
          .append(received[peer * block])
          .append(", width=")
          .append(received[peer * block + 1]);
    }
    return new MismatchedCallException(text.toString());
  }

  @Override
  public synchronized void close() {
    Resources.closeAll(given, tables, sums);
  }
}
