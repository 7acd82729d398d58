package org.gradientsync.internal.buckets;

import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.gradientsync.Communicator;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;
import org.gradientsync.internal.ranks.ShortText;
import org.gradientsync.internal.selection.Answers;

/** Checks that all ranks have the same parameters and options. */
public final class LayoutCheck {
  private static final int TYPES = 16; // more than the number of data types
  private static final int MAX_CHARACTERS = 500; // of a parameter's text in errors

  private LayoutCheck() {}

  /**
   * Throws on every rank if parameters or options differ. Collective.
   *
   * @param names the options' names
   * @param options the options' values
   * @throws MismatchedCallException naming the first parameter that differs and each rank's, or the
   *     option
   */
  static void requireSame(
      Communicator communicator, List<Parameter> parameters, List<String> names, long... options) {
    int size = communicator.size();
    long[] counts = new long[size];
    communicator.allGather(
        LongBuffer.wrap(new long[] {parameters.size()}), LongBuffer.wrap(counts));
    int common = (int) Arrays.stream(counts).min().getAsLong();
    int first = firstDifferent(communicator, parameters.subList(0, common));
    if (first < common || Arrays.stream(counts).max().getAsLong() != common) {
      refuse(communicator, parameters, first);
    }
    long[] all = new long[options.length * size];
    communicator.allGather(LongBuffer.wrap(options), LongBuffer.wrap(all));
    for (int i = 0; i < all.length; i++) {
      if (all[i] != options[i % options.length]) {
        throw new MismatchedCallException(
            "the ranks' buckets have different options: "
                + names.get(i % options.length)
                + "="
                + options[i % options.length]
                + ", rank="
                + communicator.rank()
                + ", there="
                + all[i]
                + ", other="
                + i / options.length
                + "; build them alike on all ranks");
      }
    }
  }

  /** Throws if two parameters have the same name. The ranks' parameters are known to be equal. */
  static void requireDifferentNames(List<Parameter> parameters, int rank) {
    Map<String, Integer> seen = new HashMap<>();
    for (int i = 0; i < parameters.size(); i++) {
      Integer first = seen.putIfAbsent(parameters.get(i).name(), i);
      if (first != null) {
        throw new IllegalArgumentException(
            "two parameters have the same name: name="
                + inOneLine(parameters.get(i).name())
                + ", first="
                + first
                + ", second="
                + i
                + ", rank="
                + rank
                + "; give each a name of its own");
      }
    }
  }

  /** The index of the first parameter that differs, or their number; the same on all ranks. */
  private static int firstDifferent(Communicator communicator, List<Parameter> parameters) {
    long[] keys = new long[2 * parameters.size()];
    for (int i = 0; i < parameters.size(); i++) {
      Parameter parameter = parameters.get(i);
      keys[2 * i] = parameter.count() * TYPES + parameter.type().ordinal();
      keys[2 * i + 1] = digest(parameter.name());
    }
    long[] least = keys.clone();
    communicator.allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    communicator.allReduce(LongBuffer.wrap(keys), ReduceOp.MAX);
    int first = Arrays.mismatch(least, keys);
    return first < 0 ? parameters.size() : first / 2;
  }

  private static long digest(String name) {
    return UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8)).getMostSignificantBits();
  }

  private static void refuse(Communicator communicator, List<Parameter> parameters, int index) {
    boolean has = index < parameters.size();
    String own = has ? parameters.get(index).toString() : "no such parameter";
    StringBuilder text =
        new StringBuilder("the ranks' parameters differ: first=")
            .append(index)
            .append(has ? " (" + inOneLine(parameters.get(index).name()) + ")" : "")
            .append(", rank=")
            .append(communicator.rank())
            .append(':');
    int rank = 0;
    for (String[] there : Answers.exchange(communicator, inOneLine(own))) {
      text.append("\n  rank ").append(rank++).append(": ").append(inOneLine(there[0]));
    }
    throw new MismatchedCallException(text.toString());
  }

  private static String inOneLine(String text) {
    return ShortText.oneLine(text.substring(0, Math.min(text.length(), MAX_CHARACTERS)));
  }
}
