package org.gradientsync.core.backend;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.Communicator;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.Parameter;
import org.gradientsync.ReduceOp;

/** Checks that all ranks have the same parameters and options. */
public final class LayoutCheck {
  private static final int MAX_CHARACTERS = 500; // of a parameter's text in errors

  private LayoutCheck() {}

  /**
   * Throws on every rank if parameters or options differ. Collective.
   *
   * @param communicator the ranks
   * @param parameters this rank's, in order
   * @param names the options' names
   * @param options the options' values
   * @throws MismatchedCallException naming the first parameter that differs and each rank's, or the
   *     option
   */
  public static void requireSame(
      Communicator communicator, List<Parameter> parameters, List<String> names, long... options) {
    requireSame(
        communicator,
        parameters.stream().map(Parameter::name).toList(),
        parameters.stream().map(Parameter::toString).toList());
    int size = communicator.size();
    long[] all = new long[options.length * size];
    communicator.allGather(LongBuffer.wrap(options), LongBuffer.wrap(all));
    for (int i = 0; i < all.length; i++) {
      if (all[i] != options[i % options.length]) {
        throw new MismatchedCallException(
            ("the ranks' buckets have different options: %s=%s, rank=%s, there=%s, other=%s;"
                    + " build them alike on all ranks")
                .formatted(
                    names.get(i % options.length),
                    options[i % options.length],
                    communicator.rank(),
                    all[i],
                    i / options.length));
      }
    }
  }

  /**
   * Throws on every rank if parameters differ. Collective.
   *
   * @param communicator the ranks
   * @param names the parameters' names
   * @param texts all of each parameter that must be the same, for the error: as many
   * @throws MismatchedCallException naming the first parameter that differs, with each rank's text
   */
  public static void requireSame(
      Communicator communicator, List<String> names, List<String> texts) {
    long[] counts = new long[communicator.size()];
    communicator.allGather(LongBuffer.wrap(new long[] {texts.size()}), LongBuffer.wrap(counts));
    int common = (int) Arrays.stream(counts).min().getAsLong();
    int first = firstDifferent(communicator, texts.subList(0, common));
    if (first < common || Arrays.stream(counts).max().getAsLong() != common) {
      refuse(communicator, names, texts, first);
    }
  }

  /**
   * Throws if two parameters have the same name. The ranks' parameters are known to be equal.
   *
   * @param parameters the same on all ranks
   * @param rank this rank, for the error
   */
  public static void requireDifferentNames(List<Parameter> parameters, int rank) {
    Map<String, Integer> seen = new HashMap<>();
    for (int i = 0; i < parameters.size(); i++) {
      Integer first = seen.putIfAbsent(parameters.get(i).name(), i);
      if (first != null) {
        throw new IllegalArgumentException(
            ("two parameters have the same name: name=%s, first=%s, second=%s, rank=%s;"
                    + " give each a name of its own")
                .formatted(inOneLine(parameters.get(i).name()), first, i, rank));
      }
    }
  }

  /** The index of the first text that differs, or their number; the same on all ranks. */
  private static int firstDifferent(Communicator communicator, List<String> texts) {
    long[] least = texts.stream().mapToLong(Answers::digest).toArray();
    long[] most = least.clone();
    communicator.allReduce(LongBuffer.wrap(least), ReduceOp.MIN);
    communicator.allReduce(LongBuffer.wrap(most), ReduceOp.MAX);
    int first = Arrays.mismatch(least, most);
    return first < 0 ? texts.size() : first;
  }

  private static void refuse(
      Communicator communicator, List<String> names, List<String> texts, int index) {
    boolean has = index < texts.size();
    String own = has ? texts.get(index) : "no such parameter";
    StringBuilder text =
        new StringBuilder("the ranks' parameters differ: first=")
            .append(index)
            .append(has ? " (" + inOneLine(names.get(index)) + ")" : "")
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
