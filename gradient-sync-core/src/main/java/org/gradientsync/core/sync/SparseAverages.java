package org.gradientsync.core.sync;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.Communicator;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.SparseRows;

/**
 * Averages rows of tables: all ranks learn which rows any of them has, and average a dense array of
 * these. So each element has the bits that it has in the average of the whole table.
 */
final class SparseAverages {
  private static final int HEADER = 2 * Long.BYTES; // the size of the table

  private SparseAverages() {}

  /** The rows that any rank has, in ascending order, with this rank's elements. Collective. */
  static SparseRows union(Communicator communicator, SparseRows own) {
    List<byte[]> all = communicator.allGather(bytes(own));
    int total = 0;
    for (int rank = 0; rank < all.size(); rank++) {
      ByteBuffer header = ByteBuffer.wrap(all.get(rank));
      if (header.getLong() != own.tableRows() || header.getLong() != own.width()) {
        throw different(all, communicator.rank());
      }
      total = Math.addExact(total, longs(all.get(rank)).remaining());
    }
    long[] union = new long[total];
    int at = 0;
    for (byte[] bytes : all) {
      LongBuffer indices = longs(bytes);
      int count = indices.remaining();
      indices.get(union, at, count);
      at += count;
    }
    union = sorted(union);
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
    return new SparseRows(own.tableRows(), own.width(), union, dense(own, union));
  }

  private static byte[] bytes(SparseRows own) {
    long[] indices = sorted(own.indices().clone());
    ByteBuffer bytes =
        ByteBuffer.allocate(Math.addExact(HEADER, Math.multiplyExact(indices.length, Long.BYTES)));
    bytes.putLong(own.tableRows()).putLong(own.width());
    bytes.asLongBuffer().put(indices);
    return bytes.array();
  }

  private static LongBuffer longs(byte[] bytes) {
    return ByteBuffer.wrap(bytes, HEADER, bytes.length - HEADER).asLongBuffer();
  }

  /** Sorts, and drops what comes again. */
  private static long[] sorted(long[] indices) {
    Arrays.sort(indices);
    int count = 0;
    for (int i = 0; i < indices.length; i++) {
      if (i == 0 || indices[i] != indices[i - 1]) {
        indices[count++] = indices[i];
      }
    }
    return Arrays.copyOf(indices, count);
  }

  private static float[] dense(SparseRows own, long[] union) {
    int width = own.width();
    float[] elements = own.elements();
    float[] dense = new float[union.length * width];
    for (int i = 0; i < own.indices().length; i++) {
      int row = Arrays.binarySearch(union, own.indices()[i]);
      for (int k = 0; k < width; k++) {
        dense[row * width + k] += elements[i * width + k];
      }
    }
    return dense;
  }

  private static MismatchedCallException different(List<byte[]> all, int rank) {
    StringBuilder text =
        new StringBuilder("the ranks average rows of different tables, rank=")
            .append(rank)
            .append(':');
    for (int peer = 0; peer < all.size(); peer++) {
      ByteBuffer header = ByteBuffer.wrap(all.get(peer));
      text.append("\n  rank ")
          .append(peer)
          .append(": tableRows=")
          .append(header.getLong())
          .append(", width=")
          .append(header.getLong());
    }
    return new MismatchedCallException(text.toString());
  }
}
