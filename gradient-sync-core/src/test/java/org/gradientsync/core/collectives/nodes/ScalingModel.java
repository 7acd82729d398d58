package org.gradientsync.core.collectives.nodes;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.gradientsync.SumOrder;
import org.gradientsync.core.rendezvous.GatheredCalls;

/**
 * Prints modelled times of collectives on up to 512 nodes, and draws those of all-reduces. Nothing
 * here is measured. Run it with {@code script/measure/model}.
 */
final class ScalingModel {
  private static final ModelledMachine MACHINE = ModelledMachine.CLUSTER;
  private static final int MAX_NODES = 512;
  private static final int MAX_NODES_OF_BORDER = 64;
  private static final long MAX_BYTES_OF_BORDER = 4 << 20;
  private static final long[] SIZES = {1 << 10, 64 << 10, 1 << 20, 64 << 20, 1 << 30};

  /** The panels of the chart. */
  private static final List<Long> DRAWN = List.of(1L << 10, 1L << 20, 64L << 20, 1L << 30);

  private static final List<String> NAMES =
      List.of(
          "two-level, RANKS",
          "two-level, ANY",
          "ring",
          "ring of nodes",
          "recursive doubling",
          "NCCL's trees");

  private ScalingModel() {}

  /**
   * Prints the tables.
   *
   * @param args where the chart goes
   */
  public static void main(String[] args) throws IOException {
    int[] nodes = new int[Integer.numberOfTrailingZeros(MAX_NODES) + 1];
    Arrays.setAll(nodes, i -> 1 << i);
    System.out.printf("%s%n%n", MACHINE);
    System.out.println("Modelled times, and messages that the busiest rank sends:\n");
    System.out.println(
        "| ranks (nodes) | size | " + String.join(" | ", NAMES) + " | messages a rank |");
    System.out.println("| --- ".repeat(NAMES.size() + 3) + "|");
    ScalingChart chart = new ScalingChart();
    for (long bytes : SIZES) {
      List<Modelled[]> lines = new ArrayList<>();
      NAMES.forEach(name -> lines.add(new Modelled[nodes.length]));
      for (int i = 0; i < nodes.length; i++) {
        Modelled[] models = models(nodes[i], bytes / ModelledTwoLevel.ELEMENT);
        for (int line = 0; line < models.length; line++) {
          lines.get(line)[i] = models[line];
        }
        printRow(nodes[i], bytes, models);
      }
      if (DRAWN.contains(bytes)) {
        int[] ranks = Arrays.stream(nodes).map(each -> each * MACHINE.ranksPerNode()).toArray();
        chart.add(size(bytes), NAMES, ranks, lines);
      }
    }
    chart.write(Path.of(args[0]));
    printBorders();
    printMoves(nodes);
    printScatters(nodes);
  }

  private static Modelled[] models(int nodes, long count) {
    return new Modelled[] {
      ModelledTwoLevel.allReduce(MACHINE, nodes, SumOrder.RANKS, count),
      ModelledTwoLevel.allReduce(MACHINE, nodes, SumOrder.ANY, count),
      ModelledRivals.ring(MACHINE, nodes, count),
      nodes == 1 ? null : ModelledRivals.nodeRing(MACHINE, nodes, count),
      ModelledRivals.doubling(MACHINE, nodes, count),
      nodes == 1 ? null : ModelledRivals.tree(MACHINE, nodes, count)
    };
  }

  private static void printRow(int nodes, long bytes, Modelled[] models) {
    StringBuilder row = new StringBuilder();
    row.append(
        String.format(
            Locale.ROOT, "| %,d (%d) | %s", nodes * MACHINE.ranksPerNode(), nodes, size(bytes)));
    List<String> messages = new ArrayList<>();
    long least =
        Arrays.stream(models)
            .filter(model -> model != null)
            .mapToLong(Modelled::picoseconds)
            .min()
            .orElseThrow();
    for (Modelled model : models) {
      boolean best = model != null && model.picoseconds() == least;
      String time = model == null ? "" : time(model.picoseconds());
      row.append(best ? " | **" + time + "**" : " | " + time);
      messages.add(model == null ? "-" : String.format(Locale.ROOT, "%d", model.messages()));
    }
    System.out.println(row + " | " + String.join(", ", messages) + " |");
  }

  private static String time(long picoseconds) {
    double value = picoseconds / (double) ModelledMachine.MICROSECOND;
    String unit = "us";
    if (value >= 1000) {
      value /= 1000;
      unit = "ms";
    }
    int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return String.format(Locale.ROOT, "%." + digits + "f %s", value, unit);
  }

  private static String size(long bytes) {
    return bytes >= 1 << 30
        ? (bytes >> 30) + " GiB"
        : bytes >= 1 << 20 ? (bytes >> 20) + " MiB" : (bytes >> 10) + " KiB";
  }

  /** For the sizes at which one way takes over from another. */
  private static void printBorders() {
    System.out.println(
        "\nThe ways of two-level, whatever it chooses. In rank order: contributions with the calls,"
            + " an exchange of contributions, a running sum. In any order: sums with the calls,"
            + " node sums, halving and doubling, running sums:\n");
    System.out.println(
        "| ranks (nodes) | size | calls | exchange | sum | calls | node sums | halving | sums |");
    System.out.println("| --- ".repeat(9) + "|");
    for (int nodes = 2; nodes <= MAX_NODES_OF_BORDER; nodes *= 2) {
      for (long bytes = 1 << 10; bytes <= MAX_BYTES_OF_BORDER; bytes *= 4) {
        printWays(nodes, bytes, bytes / ModelledTwoLevel.ELEMENT);
      }
    }
  }

  private static void printWays(int nodes, long bytes, long count) {
    int ranks = nodes * MACHINE.ranksPerNode();
    boolean fits = bytes <= GatheredCalls.payloadBytes(ranks);
    System.out.printf(
        Locale.ROOT,
        "| %d (%d) | %s | %s | %s | %s | %s | %s | %s | %s |%n",
        ranks,
        nodes,
        size(bytes),
        fits ? time(ModelledTwoLevel.withCalls(MACHINE, nodes, count)) : "",
        time(ModelledTwoLevel.exchange(MACHINE, nodes, count)),
        time(ModelledTwoLevel.runningSum(MACHINE, nodes, SumOrder.RANKS, count)),
        bytes <= GatheredCalls.MAX_SUM
            ? time(ModelledTwoLevel.withSums(MACHINE, nodes, count))
            : "",
        time(ModelledTwoLevel.directSums(MACHINE, nodes, count)),
        time(ModelledTwoLevel.halving(MACHINE, nodes, count)),
        time(ModelledTwoLevel.runningSum(MACHINE, nodes, SumOrder.ANY, count)));
  }

  private static String time(Modelled model) {
    return time(model.picoseconds());
  }

  /** For collectives that add nothing. */
  private static void printMoves(int[] nodes) {
    System.out.println(
        "\nCalls that add nothing, without the rendezvous: the time, divided by that of log2 M"
            + " messages and of the bytes on a link; or calls, with which the elements travel. The"
            + " size is that of the larger buffer:\n");
    String numbers =
        Arrays.stream(nodes).skip(1).mapToObj(each -> each + " |").collect(joining(" "));
    System.out.println("| call | size | " + numbers);
    System.out.println("| --- ".repeat(nodes.length + 1) + "|");
    for (String call : List.of("broadcast", "all-gather", "all-to-all")) {
      for (long bytes : SIZES) {
        StringBuilder row = new StringBuilder("| " + call + " | " + size(bytes));
        for (int i = 1; i < nodes.length; i++) {
          row.append(" | ").append(move(call, nodes[i], bytes));
        }
        System.out.println(row + " |");
      }
    }
  }

  private static void printScatters(int[] nodes) {
    System.out.println(
        "\nReduce-scatters: the time, divided by that of an all-reduce of the same input, of at"
            + " least one element a rank; with the rendezvous:\n");
    String numbers =
        Arrays.stream(nodes).skip(1).mapToObj(each -> each + " |").collect(joining(" "));
    System.out.println("| order | size | " + numbers);
    System.out.println("| --- ".repeat(nodes.length + 1) + "|");
    for (SumOrder order : SumOrder.values()) {
      for (long bytes : SIZES) {
        StringBuilder row = new StringBuilder("| " + order + " | " + size(bytes));
        for (int i = 1; i < nodes.length; i++) {
          long ranks = (long) nodes[i] * MACHINE.ranksPerNode();
          long count = Math.max(ranks, bytes / ModelledTwoLevel.ELEMENT);
          long scatter =
              ModelledTwoLevel.reduceScatter(MACHINE, nodes[i], order, count).picoseconds();
          long reduce = ModelledTwoLevel.allReduce(MACHINE, nodes[i], order, count).picoseconds();
          row.append(String.format(" | %s (%.2f)", time(scatter), scatter / (double) reduce));
        }
        System.out.println(row + " |");
      }
    }
  }

  private static String move(String call, int nodes, long bytes) {
    int perNode = MACHINE.ranksPerNode();
    long count = bytes / ModelledTwoLevel.ELEMENT;
    long block = Math.max(1, count / nodes / perNode);
    long carried = call.equals("all-gather") ? block * ModelledTwoLevel.ELEMENT : bytes;
    if (carried <= GatheredCalls.payloadBytes(nodes * perNode)) {
      return "calls";
    }
    TwoLevelSizes sizes = TwoLevelSizes.USUAL;
    Modelled model =
        switch (call) {
          case "broadcast" -> ModelledMoves.broadcast(MACHINE, nodes, sizes, count);
          case "all-gather" -> ModelledMoves.allGather(MACHINE, nodes, sizes, block);
          default -> ModelledMoves.allToAll(MACHINE, nodes, block);
        };
    long received = call.equals("broadcast") ? bytes : model.nodeBytes()[0];
    long hop = MACHINE.latency() + 2 * MACHINE.message();
    long least = HalvingRounds.count(nodes) * hop + MACHINE.linkTime(received);
    return String.format(
        Locale.ROOT, "%s (%.2f)", time(model), model.picoseconds() / (double) least);
  }
}
