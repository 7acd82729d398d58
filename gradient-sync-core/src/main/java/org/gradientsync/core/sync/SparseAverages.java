package org.gradientsync.core.sync;

import java.nio.LongBuffer;
import org.gradientsync.Communicator;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.SparseRows;

/**
 * Averages rows of tables: all ranks learn which rows any of them has, and average a dense array of
 * these. So each element has the bits that it has in the average of the whole table.
 */
final class SparseAverages {
  private static final int HEADER = 3; // the size of the table, and the number of a rank's rows
  private static final int MOST_TOGETHER = 1 << 17; // indices of all ranks in one call

  private final Communicator communicator;
  private final RowUnion rows = new RowUnion();
  private long[] sent = new long[HEADER];
  private long[] received;

  /** How many indices travel with the header; the same on all ranks. */
  private int room;

  SparseAverages(Communicator communicator) {
    this.communicator = communicator;
    received = new long[HEADER * communicator.size()];
  }

  /** The rows that any rank has, in ascending order, with this rank's elements. Collective. */
  synchronized SparseRows union(SparseRows own) {
    long[] union = exchange(own);
    if ((long) union.length * own.width() > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "the rows of all ranks do not fit an array: rows="
              + union.length
              + ", width="
              + own.width()
              + ", rank="
              + communicator.rank()
              + "; average them in several parts, or the whole table");
    }
    return new SparseRows(own.tableRows(), own.width(), union, dense(own, union.length));
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

  private float[] dense(SparseRows own, int count) {
    int width = own.width();
    float[] elements = own.elements();
    float[] dense = new float[count * width];
    int[] table = rows.table();
    int starts = own.indices().length;
    for (int row = 0; row < count; row++) {
      for (int i = table[starts + row]; i < table[starts + row + 1]; i++) {
        int from = table[i] * width;
        for (int k = 0; k < width; k++) {
          dense[row * width + k] += elements[from + k];
        }
      }
    }
    return dense;
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
}
