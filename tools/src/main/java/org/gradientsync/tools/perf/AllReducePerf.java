package org.gradientsync.tools.perf;

import java.util.List;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.spi.CollectiveCall.Kind;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * Times averages of growing size, and prints them like NVIDIA's all_reduce_perf. Checks every
 * element on request.
 */
@Command(
    name = "perf",
    subcommands = CollectivesPerf.class,
    description = {
      "Times all-reduces of growing size; perf collectives: all-gather and others, too.",
      "The table is that of all_reduce_perf of NVIDIA's"
          + " nccl-tests, its columns and units included.",
      "",
      "algbw is the size of the buffer by the time; busbw is algbw * 2(n-1)/n for n ranks, which is"
          + " what crosses each rank's link in each direction. This library reduces in place."
          + " Out-of-place means: the gradients are first copied from another buffer, on the"
          + " device, and then reduced in place; the time is that of both.",
      "",
      "A time is the median of 5 rounds; that of a round is the mean over the ranks. In a"
          + " round the calls follow one another without waiting in between. It is taken by the"
          + " GPU's clock where the gradients are on a GPU, by the CPU's otherwise.",
      ""
    })
public class AllReducePerf extends PerfProgram {
  @Option(
      names = "--wire",
      paramLabel = "TYPE",
      description = "Let FLOAT32 gradients travel as BFLOAT16 or FLOAT16.")
  private DataType wire;

  @Option(
      names = "--beside",
      description =
          "Take only a part of a GPU, as averaging does during a backward pass. With --host, and"
              + " without --graph, calls in place then go to two streams by turns, as those of"
              + " gradient buckets do.")
  private boolean beside;

  @Override
  public void checkOptions() {
    super.checkOptions();
    if (wire != null && (type != DataType.FLOAT32 || wire.sizeInBytes() != Short.BYTES)) {
      throw badUse(
          "--wire takes BFLOAT16 or FLOAT16, for FLOAT32 gradients: --wire %s, --type %s"
              .formatted(wire, type));
    }
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    super.configure(builder);
    if (wire != null) {
      builder.set("wire", wire.name());
    }
  }

  @Override
  List<PerfCollective> collectives() {
    return List.of(PerfCollective.of(Kind.ALL_REDUCE));
  }

  @Override
  TimedCase.Setup setup() {
    return new TimedCase.Setup(type, op, wire, beside, asGraph);
  }

  @Override
  void printNotes(GradientSync sync, PerfCollective collective) {
    if (hostCost && beside && !asGraph) {
      print(sync, "# host: calls in place go to two queues by turns, streams on a GPU");
    }
  }

  @Override
  String program() {
    return "allreduce-perf";
  }

  @Override
  String title() {
    return type + " " + op;
  }

  @Override
  String line(PerfResult result, boolean several) {
    return result.reducer() + ", " + result.placement();
  }

  @Override
  Map<String, Object> about(GradientSync sync) {
    Map<String, Object> about = super.about(sync);
    about.put("wire", wire == null ? type.name() : wire.name());
    about.put("beside", beside);
    return about;
  }
}
