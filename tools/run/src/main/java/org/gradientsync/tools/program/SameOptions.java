package org.gradientsync.tools.program;

import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Checks that all ranks were started with the same options. {@code mpirun -np 1 a --rows 64 : -np 1
 * a --rows 32} starts two programs that do not train one model. File names may differ, because only
 * rank 0 writes files, but all ranks must name a file or none.
 */
public final class SameOptions {
  private SameOptions() {}

  /**
   * Compares the options of all ranks. Collective.
   *
   * @param options the program's options, in the same order on all ranks
   * @return which option differs and where, or an empty string
   */
  public static String difference(GradientSync sync, List<OptionSpec> options) {
    int count = options.size();
    long[] all = marks(sync, options);
    for (int i = 0; i < count; i++) {
      int index = i;
      List<Integer> others =
          IntStream.range(1, sync.size())
              .filter(rank -> all[rank * count + index] != all[index])
              .boxed()
              .toList();
      if (!others.isEmpty()) {
        String value = text(options.get(i).getValue()); // rank 0 prints the message
        return ("%s differs from rank to rank: rank 0 has %s, ranks %s do not;"
                + " give all ranks the same options")
            .formatted(options.get(i).longestName(), value.equals("null") ? "none" : value, others);
      }
    }
    return "";
  }

  /**
   * Compares this rank's options with those of rank 0. Collective.
   *
   * @param options as above
   * @return the first option that differs, or an empty string
   */
  static String differenceFromFirst(GradientSync sync, List<OptionSpec> options) {
    int count = options.size();
    long[] all = marks(sync, options);
    return IntStream.range(0, count)
        .filter(i -> all[sync.rank() * count + i] != all[i])
        .mapToObj(i -> options.get(i).longestName())
        .findFirst()
        .orElse("");
  }

  private static long[] marks(GradientSync sync, List<OptionSpec> options) {
    long[] own = options.stream().mapToLong(option -> mark(option.getValue())).toArray();
    long[] all = new long[own.length * sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    return all;
  }

  private static long mark(Object value) {
    String compared = value instanceof Path ? "a file" : text(value);
    return UUID.nameUUIDFromBytes(compared.getBytes(StandardCharsets.UTF_8))
        .getMostSignificantBits();
  }

  private static String text(Object value) {
    String inBrackets = Arrays.deepToString(new Object[] {value}); // the value may be an array
    return inBrackets.substring(1, inBrackets.length() - 1);
  }
}
