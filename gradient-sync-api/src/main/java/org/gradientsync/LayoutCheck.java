package org.gradientsync;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;

/** Makes sure that all ranks have the same parameters, before any gradient is averaged. */
final class LayoutCheck {
  private static final int TYPES = 16; // room for the types' numbers

  private LayoutCheck() {}

  /**
   * Throws on every rank if they differ. Collective.
   *
   * @param names what the options are called
   * @param options what else has to be the same
   * @throws MismatchedCallException naming the first parameter that differs, and what each rank has
   */
  static void requireSame(
      Communicator communicator, List<Parameter> parameters, List<String> names, long... options) {
    int size = communicator.size();
    long[] counts = new long[size];
    communicator.allGather(
        LongBuffer.wrap(new long[] {parameters.size()}), LongBuffer.wrap(counts));
    int common = (int) Arrays.stream(counts).min().getAsLong();
    long[] ends = new long[2 * common];
    for (int i = 0; i < common; i++) {
      ends[2 * i] = key(parameters.get(i));
      ends[2 * i + 1] = -ends[2 * i];
    }
    communicator.allReduce(LongBuffer.wrap(ends), ReduceOp.MIN);
    for (int i = 0; i < common; i++) {
      if (ends[2 * i] != -ends[2 * i + 1]) {
        refuse(communicator, parameters, i, key(parameters.get(i)));
      }
    }
    if (Arrays.stream(counts).max().getAsLong() != common) {
      refuse(
          communicator,
          parameters,
          common,
          common < parameters.size() ? key(parameters.get(common)) : -1);
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

  private static void refuse(
      Communicator communicator, List<Parameter> parameters, int index, long own) {
    long[] keys = new long[communicator.size()];
    communicator.allGather(LongBuffer.wrap(new long[] {own}), LongBuffer.wrap(keys));
    StringBuilder text =
        new StringBuilder("the ranks' parameters differ: first=")
            .append(index)
            .append(own < 0 ? "" : " (" + parameters.get(index).name() + ")")
            .append(", rank=")
            .append(communicator.rank())
            .append(':');
    for (int rank = 0; rank < keys.length; rank++) {
      text.append("\n  rank ").append(rank).append(": ").append(describe(keys[rank]));
    }
    throw new MismatchedCallException(text.toString());
  }

  private static long key(Parameter parameter) {
    return parameter.count() * TYPES + parameter.type().ordinal();
  }

  private static String describe(long key) {
    return key < 0
        ? "no such parameter"
        : DataType.values()[(int) (key % TYPES)] + "[" + key / TYPES + "]";
  }
}
