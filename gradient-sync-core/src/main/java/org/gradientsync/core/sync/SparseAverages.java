package org.gradientsync.core.sync;

import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.SparseRows;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;

/**
 * Averages rows of tables: all ranks learn which rows any of them has, and average a dense buffer
 * of these. So each element has the bits that it has in the average of the whole table.
 */
final class SparseAverages implements AutoCloseable {
  private static final int HEADER = 3; // the size of the table, and the number of a rank's indices
  private static final int MOST_TOGETHER = 1 << 17; // indices of all ranks in one call

  private final GradientSync sync;
  private final GroupCommunicator communicator;
  private final BackendDevice device;
  private final CollectiveArguments arguments;
  private final KeptBuffers given;
  private final KeptBuffers tables;
  private final KeptBuffers sums;
  private final RowUnion rows;
  private final LongBuffer[][] blocks; // by slot and rank: a header and indices
  private LongBuffer sent; // a block, or null if the ranks write to memory of the node
  private LongBuffer received; // all blocks, or null as above
  private int slot; // where this rank writes next

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
    rows = new RowUnion(communicator.size());
    blocks = new LongBuffer[2][communicator.size()];
    useMessages();
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
    if ((long) union.length * width > Integer.MAX_VALUE - 8) { // on all ranks
      throw new IllegalArgumentException(
          ("the rows of all ranks do not fit an array: rows=%s, width=%s, rank=%s;"
                  + " average them in several parts, or the whole table")
              .formatted(union.length, width, communicator.rank()));
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
    ((AbstractDeviceBuffer) padded)
        .elementsNamed(
            element -> "row " + union[(int) (element / width)] + "[" + element % width + "]");
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
          ("rows must be on the device's own stream, and no earlier average: buffer=%s, rank=%s;"
                  + " copy them to a buffer of your own")
              .formatted(buffer, communicator.rank()));
    }
  }

  /**
   * Finds the union. One call of the communicator, if no rank has more indices than the calls
   * before had room for; otherwise one more for each rank that has some.
   */
  private long[] exchange(SparseRows own) {
    int rank = communicator.rank();
    long[] indices = rows.sort(own.indices());
    int count = rows.distinct();
    LongBuffer mine = received == null ? blocks[slot][rank] : sent;
    mine.put(0, own.tableRows()).put(1, own.width()).put(2, count);
    mine.put(HEADER, indices, 0, count <= room ? count : 0);
    LongBuffer[] all = gather();
    int total = 0;
    int most = 0;
    for (LongBuffer block : all) {
      if (block.get(0) != own.tableRows() || block.get(1) != own.width()) {
        throw different(all);
      }
      total = Math.addExact(total, (int) block.get(2));
      most = Math.max(most, (int) block.get(2));
    }
    rows.begin(total);
    for (int peer = 0; peer < all.length; peer++) {
      int some = (int) all[peer].get(2);
      LongBuffer list = peer == rank ? LongBuffer.wrap(indices, 0, some) : rows.add(some);
      if (most > room && some > 0) {
        communicator.broadcast(list, peer);
      } else if (peer != rank) {
        list.put(list.position(), all[peer], HEADER, some);
      }
    }
    if (most > room && most <= MOST_TOGETHER / all.length) {
      makeRoom(most);
    }
    return rows.find();
  }

  /** All ranks' blocks, valid until the next call but one. */
  private LongBuffer[] gather() {
    if (received != null) {
      communicator.allGather(sent, received);
      return blocks[0];
    }
    // A rank writes to a slot again after the next call, for which the others come when they have
    // read it.
    communicator.barrier(Origin.AVERAGE_ROWS);
    slot = 1 - slot;
    return blocks[1 - slot];
  }

  /** Lets as many indices, and some more, travel with the header from now on. */
  private void makeRoom(int count) {
    int size = communicator.size();
    room = Math.min(count + count / 4, MOST_TOGETHER / size);
    int block = HEADER + room;
    if (communicator.nodeCount() == 1 && NodeIdentity.canShareMemory().usable()) {
      try {
        NodeMemory memory = NodeMemory.share(communicator, 2 * block * Long.BYTES);
        for (int peer = 0; peer < size; peer++) {
          LongBuffer both = memory.of(peer).asLongBuffer();
          blocks[0][peer] = both.slice(0, block);
          blocks[1][peer] = both.slice(block, block);
        }
        sent = null;
        received = null;
        return;
      } catch (UnavailableException e) {
        // on all ranks; messages always work
      }
    }
    useMessages();
  }

  private void useMessages() {
    int block = HEADER + room;
    sent = LongBuffer.allocate(block);
    received = LongBuffer.allocate(block * blocks[0].length);
    for (int peer = 0; peer < blocks[0].length; peer++) {
      blocks[0][peer] = received.slice(peer * block, block);
    }
  }

  private MismatchedCallException different(LongBuffer[] all) {
    StringBuilder text =
        new StringBuilder("the ranks average rows of different tables, rank=")
            .append(communicator.rank())
            .append(':');
    for (int peer = 0; peer < all.length; peer++) {
      text.append("\n  rank ")
          .append(peer)
          .append(": tableRows=")
          .append(all[peer].get(0))
          .append(", width=")
          .append(all[peer].get(1));
    }
    MismatchedCallException different = new MismatchedCallException(text.toString());
    communicator.thrownByAll(different);
    return different;
  }

  @Override
  public synchronized void close() {
    Resources.closeAll(given, tables, sums);
  }
}
