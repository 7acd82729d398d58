package org.gradientsync.core.backend;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSyncException;
import org.gradientsync.UnavailableException;

/** Checks whether a joint setup has succeeded on all ranks. */
public final class Agreement {
  private static final int REASON_BYTES = 400;

  private Agreement() {}

  /**
   * Says why this rank failed, for {@link #requireAll}.
   *
   * @param failure what was thrown
   * @return its message if that is for users, otherwise with its class; never empty
   */
  public static String reason(Throwable failure) {
    boolean isForUsers =
        failure instanceof GradientSyncException || failure instanceof IllegalArgumentException;
    String text = failure.getMessage();
    return isForUsers && text != null && !text.isBlank() ? text : failure.toString();
  }

  /**
   * As {@link #requireAll(Communicator, String)}, with the failure in the exception of its rank.
   *
   * @param communicator the ranks
   * @param failure what was thrown on this rank, or null
   */
  public static void requireAll(Communicator communicator, Throwable failure) {
    try {
      requireAll(communicator, failure == null ? "" : reason(failure));
    } catch (UnavailableException e) {
      if (failure != null) {
        e.addSuppressed(failure);
      }
      throw e;
    }
  }

  /**
   * Throws on all ranks, with the same text, if one of them has failed. Collective.
   *
   * @param communicator the ranks
   * @param reason why this rank failed, or an empty text; sent as one line of at most 400 bytes
   * @throws UnavailableException with the reason of the first rank that has one
   */
  public static void requireAll(Communicator communicator, String reason) {
    byte[] own = reason.getBytes(StandardCharsets.UTF_8);
    byte[] sent = own.length <= REASON_BYTES ? own : Arrays.copyOf(own, REASON_BYTES);
    int rank = 0;
    for (byte[] bytes : communicator.allGather(sent)) {
      if (bytes.length > 0) {
        String text = ShortText.oneLine(new String(bytes, StandardCharsets.UTF_8).trim());
        throw new UnavailableException(text + " (rank " + rank + ")");
      }
      rank++;
    }
  }
}
