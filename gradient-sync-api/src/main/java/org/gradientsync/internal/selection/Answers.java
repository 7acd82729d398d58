package org.gradientsync.internal.selection;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.Communicator;
import org.gradientsync.UnavailableException;

/** Lists of texts that ranks tell each other, as bytes: each rank's are read by all others. */
public final class Answers {
  /** Of one rank; far more than any rank says, and little enough to make room for. */
  static final int MOST_BYTES = 1 << 20;

  private Answers() {}

  /**
   * Tells all ranks a text, and returns what each of them tells, taken apart at each zero
   * character. Collective.
   */
  public static List<String[]> exchange(Communicator communicator, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int size = communicator.size();
    long[] lengths = new long[size];
    communicator.allGather(LongBuffer.wrap(new long[] {bytes.length}), LongBuffer.wrap(lengths));
    int longest = longest(lengths);
    ByteBuffer all = ByteBuffer.allocate(Math.multiplyExact(size, longest));
    communicator.allGather(ByteBuffer.wrap(Arrays.copyOf(bytes, longest)), all);
    return parse(all.array(), lengths);
  }

  /** How much room each rank's answer takes. */
  static int longest(long[] lengths) {
    int longest = 0;
    for (int rank = 0; rank < lengths.length; rank++) {
      if (lengths[rank] < 0 || lengths[rank] > MOST_BYTES) {
        throw new UnavailableException(
            "a rank's answer cannot be read: rank="
                + rank
                + ", bytes="
                + lengths[rank]
                + ", most="
                + MOST_BYTES
                + "; run the same version of this library on all ranks");
      }
      longest = Math.max(longest, (int) lengths[rank]);
    }
    return longest;
  }

  /**
   * Takes the texts apart.
   *
   * @param all each rank's bytes, in {@link #longest} bytes for each
   * @param lengths how many of them each rank has used
   * @return the texts of each rank, not to be changed: ranks that answer alike have one array
   */
  static List<String[]> parse(byte[] all, long[] lengths) {
    int longest = longest(lengths);
    List<String[]> answers = new ArrayList<>(lengths.length);
    for (int rank = 0; rank < lengths.length; rank++) {
      int from = rank * longest;
      int bytes = (int) lengths[rank];
      boolean repeated = rank > 0 && bytes == lengths[rank - 1];
      repeated =
          repeated
              && Arrays.equals(
                  all, from, from + bytes, all, from - longest, from - longest + bytes);
      answers.add( // most ranks answer alike, and each one reads the answers of all
          repeated
              ? answers.get(rank - 1)
              : new String(all, from, bytes, StandardCharsets.UTF_8).split("\0", -1));
    }
    return answers;
  }
}
