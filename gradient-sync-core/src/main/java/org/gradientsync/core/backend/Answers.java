package org.gradientsync.core.backend;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.gradientsync.Communicator;
import org.gradientsync.UnavailableException;

/** Exchanges lists of texts between ranks, so that every rank has the lists of all ranks. */
public final class Answers {
  /** The limit for one rank: far more than any rank sends, but little enough to allocate. */
  static final int MAX_BYTES = 1 << 20;

  private Answers() {}

  /**
   * Sends a text to all ranks, and returns the text of each rank, split at each zero character.
   * Collective.
   */
  public static List<String[]> exchange(Communicator communicator, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int size = communicator.size();
    long digest = UUID.nameUUIDFromBytes(bytes).getMostSignificantBits();
    long[] all = new long[2 * size];
    communicator.allGather(
        LongBuffer.wrap(new long[] {bytes.length, digest}), LongBuffer.wrap(all));
    boolean equal = true;
    for (int rank = 0; rank < size; rank++) {
      equal &= all[2 * rank] == bytes.length && all[2 * rank + 1] == digest;
    }
    if (equal) { // as in most jobs: nothing need be sent
      return Collections.nCopies(size, text.split("\0", -1));
    }
    long[] lengths = IntStream.range(0, size).mapToLong(rank -> all[2 * rank]).toArray();
    int longest = longest(lengths);
    ByteBuffer texts = ByteBuffer.allocate(Math.multiplyExact(size, longest));
    communicator.allGather(ByteBuffer.wrap(Arrays.copyOf(bytes, longest)), texts);
    return parse(texts.array(), lengths);
  }

  /** The bytes of the longest answer, to which all answers are padded. */
  static int longest(long[] lengths) {
    int longest = 0;
    for (int rank = 0; rank < lengths.length; rank++) {
      if (lengths[rank] < 0 || lengths[rank] > MAX_BYTES) {
        throw new UnavailableException(
            "a rank's answer cannot be read: rank="
                + rank
                + ", bytes="
                + lengths[rank]
                + ", most="
                + MAX_BYTES
                + "; run the same version of this library on all ranks");
      }
      longest = Math.max(longest, (int) lengths[rank]);
    }
    return longest;
  }

  /**
   * Splits the texts.
   *
   * @param all the answers, each padded to {@link #longest} bytes
   * @param lengths the number of bytes of each rank's answer
   * @return the texts of each rank, which the caller must not change because ranks with equal
   *     answers share an array
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
      answers.add( // most answers are equal, and each rank reads all of them
          repeated
              ? answers.get(rank - 1)
              : new String(all, from, bytes, StandardCharsets.UTF_8).split("\0", -1));
    }
    return answers;
  }
}
