package org.gradientsync.tcp;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;

/** A program whose ranks are lost, one by one or together, while the others go on. */
final class SurvivorProgram {
  private static final int COUNT = 30_001;

  private SurvivorProgram() {}

  /**
   * Runs one rank.
   *
   * @param args how the ranks are lost, then those that are lost together, separated by commas, for
   *     each time
   */
  public static void main(String[] args) throws Exception {
    GradientSync sync = GradientSync.builder().elastic(args[0].equals("throw")).create();
    int own = sync.rank();
    List<Integer> left =
        IntStream.range(0, sync.size()).boxed().collect(Collectors.toCollection(ArrayList::new));
    DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, COUNT);
    for (int time = 1; time < args.length; time++) {
      List<Integer> lost = Stream.of(args[time].split(",")).map(Integer::valueOf).toList();
      try {
        for (int round = 0; ; round++) {
          if (round == 20 && lost.contains(own)) {
            lose(args[0], sync);
            return;
          }
          average(sync, buffer, own, left, round);
        }
      } catch (RankLostException e) {
        long start = System.nanoTime();
        sync = sync.survivors();
        System.out.println(
            "went on in " + (System.nanoTime() - start) / 1_000_000 + " ms after " + e);
      }
      left.removeAll(lost);
      if (sync.size() != left.size() || left.get(sync.rank()) != own) {
        throw new AssertionError(
            "rank=" + sync.rank() + ", size=" + sync.size() + ", left=" + left);
      }
    }
    for (int round = 0; round < 100; round++) {
      average(sync, buffer, own, left, round);
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
    buffer.close();
    sync.close();
  }

  private static void lose(String how, GradientSync sync) throws Exception {
    switch (how) {
      case "hang" -> Thread.sleep(600_000); // until the test ends it
      case "linger" -> {
        sync.close();
        Thread.sleep(5_000); // longer than the others take to go on
      }
      case "kill" ->
          new ProcessBuilder("kill", "-KILL", "" + ProcessHandle.current().pid()).start().waitFor();
      case "throw" -> throw new IllegalStateException("the data ran out");
      case "exit" -> System.exit(3);
      case "halt" -> Runtime.getRuntime().halt(4);
      case "return" -> {}
      case "term" -> {
        new ProcessBuilder("kill", "-TERM", "" + ProcessHandle.current().pid()).start().waitFor();
        Thread.sleep(60_000);
      }
      default -> throw new IllegalArgumentException(how);
    }
  }

  private static float value(int rank, int index, int round) {
    return 5 * rank + index % 1000 + round;
  }

  private static void average(
      GradientSync sync, DeviceBuffer buffer, int own, List<Integer> all, int round) {
    float[] values = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      values[i] = value(own, i, round);
    }
    buffer.copyFrom(values);
    sync.average(buffer);
    buffer.copyTo(values);
    float[] expected = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      for (int rank : all) {
        expected[i] += value(rank, i, round);
      }
      expected[i] /= all.size();
    }
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
