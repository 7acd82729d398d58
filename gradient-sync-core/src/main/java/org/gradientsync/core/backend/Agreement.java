package org.gradientsync.core.backend;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;
import org.gradientsync.Communicator;
import org.gradientsync.UnavailableException;

/** Checks whether a joint setup has succeeded on all ranks. */
public final class Agreement {
  private static final int REASON_BYTES = 400;

  private Agreement() {}

  /**
   * Throws on all ranks, with the same text, if one of them has failed. Collective.
   *
   * @param communicator the ranks
   * @param reason why this rank failed, or an empty text; sent as one line of at most 400 bytes
   * @throws UnavailableException with the reason of the first rank that has one
   */
  public static void requireAll(Communicator communicator, String reason) {
    long[] failed = new long[communicator.size()];
    long[] ownFailed = {reason.isEmpty() ? 0 : 1};
    communicator.allGather(LongBuffer.wrap(ownFailed), LongBuffer.wrap(failed));
    if (Arrays.stream(failed).sum() == 0) {
      return; // without a text of each rank
    }
    ByteBuffer own = ByteBuffer.allocate(REASON_BYTES);
    ShortText.put(own, 0, REASON_BYTES, reason);
    ByteBuffer all = ByteBuffer.allocate(REASON_BYTES * communicator.size());
    communicator.allGather(own, all);
    for (int rank = 0; rank < communicator.size(); rank++) {
      String text = ShortText.get(all, rank * REASON_BYTES, REASON_BYTES);
      if (!text.isEmpty()) {
        throw new UnavailableException(text + " (rank " + rank + ")");
      }
    }
  }
}
