package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.gradientsync.UnavailableException;

/** Lets ranks that set something up together find out whether it has worked on all of them. */
public final class Agreement {
  private static final int REASON_BYTES = 400;

  private Agreement() {}

  /**
   * Throws on all ranks, with the same text, if one of them cannot go on. Collective.
   *
   * @param communicator the ranks
   * @param reason why this rank cannot, or an empty text; what is beyond 400 bytes is cut off
   * @throws UnavailableException with the reason of the first rank that has one
   */
  public static void requireAll(GroupCommunicator communicator, String reason) {
    byte[] own = Arrays.copyOf(reason.getBytes(StandardCharsets.UTF_8), REASON_BYTES);
    ByteBuffer all = ByteBuffer.allocate(REASON_BYTES * communicator.size());
    communicator.allGather(ByteBuffer.wrap(own), all);
    for (int rank = 0; rank < communicator.size(); rank++) {
      String text =
          new String(all.array(), rank * REASON_BYTES, REASON_BYTES, StandardCharsets.UTF_8).trim();
      if (!text.isEmpty()) {
        throw new UnavailableException(text + " (rank " + rank + ")");
      }
    }
  }
}
