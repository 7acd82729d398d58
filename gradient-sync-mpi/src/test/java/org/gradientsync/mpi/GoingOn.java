package org.gradientsync.mpi;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;

/** A program whose ranks are lost, one by one, while the others go on. */
final class GoingOn {
  private static final int COUNT = 30_001;

  private GoingOn() {}

  /**
   * Runs one rank.
   *
   * @param args how the ranks are lost, and then their numbers
   */
  public static void main(String[] args) throws Exception {
    GradientSync sync = GradientSync.builder().elastic(args[0].equals("throw")).create();
    int own = sync.rank();
    List<Integer> left = IntStream.range(0, sync.size()).boxed().collect(Collectors.toList());
    DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT);
    for (String next : List.of(args).subList(1, args.length)) {
      int lost = Integer.parseInt(next);
      try {
        for (int round = 0; ; round++) {
          if (round == 20 && own == lost) {
            lose(args[0]);
          }
          average(sync, buffer, own, left, round);
        }
      } catch (RankLostException e) {
        sync = sync.survivors();
        left.remove((Integer) lost);
      }
    }
    for (int round = 0; round < 100; round++) {
      average(sync, buffer, own, left, round);
    }
    buffer.close();
    sync.close();
    if (own == left.get(0)) {
      Thread.sleep(1500); // the others have ended their programs
    }
    System.out.println(
        "rank "
            + own
            + " has averaged as "
            + sync.rank()
            + " of "
            + sync.size()
            + " by "
            + sync.reducer());
  }

  private static void lose(String how) throws Exception {
    if (how.equals("throw")) {
      throw new IllegalStateException("the data ran out");
    }
    new ProcessBuilder("kill", "-KILL", "" + ProcessHandle.current().pid()).start().waitFor();
  }

  /** Averages the numbers of the ranks, whose sums are exact. */
  private static void average(
      GradientSync sync, DeviceBuffer buffer, int own, List<Integer> all, int round) {
    float[] values = new float[COUNT];
    Arrays.fill(values, own + round);
    buffer.copyFrom(values);
    sync.average(buffer);
    buffer.copyTo(values);
    float[] expected = new float[COUNT];
    int sum = all.stream().mapToInt(rank -> rank + round).sum();
    Arrays.fill(expected, (float) sum / all.size());
    int wrong = Arrays.mismatch(expected, values);
    if (wrong >= 0) {
      throw new AssertionError(
          "round="
              + round
              + ", index="
              + wrong
              + ", is="
              + values[wrong]
              + ", expected="
              + expected[wrong]);
    }
  }
}
