package org.gradientsync.tools.perf;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.gradientsync.GradientSync;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * Times each collective with growing sizes, and prints them like NVIDIA's nccl-tests. Checks every
 * element on request.
 */
@Command(
    name = "collectives",
    description = {
      "Times all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all, a message"
          + " from each rank to the next one, and a group of 64 all-reduces, with growing sizes."
          + " The tables are those of NVIDIA's nccl-tests, its columns, units and definitions"
          + " included.",
      "",
      "The size is that of the larger buffer, or of a group's buffers together; count is the"
          + " elements of one rank's part. algbw is size by time. busbw is algbw * 2(n-1)/n for"
          + " all-reduce and grouped, algbw * (n-1)/n for all-gather, reduce-scatter and"
          + " all-to-all, and algbw for the others, with n ranks.",
      "",
      "All-reduce, grouped, broadcast and reduce are in place. Out-of-place means for them: the"
          + " elements are first copied from another buffer, on the device; the time is that of"
          + " both. All-to-all and send-receive are never in place. In send-receive the ranks take"
          + " turns: those with even numbers send before they receive.",
      "",
      "A time is the median of 5 rounds; that of a round is the mean over the ranks. In a"
          + " round the calls follow one another without waiting in between. It is taken by the"
          + " GPU's clock where the elements are on a GPU, by the CPU's otherwise.",
      ""
    })
public class CollectivesPerf extends PerfProgram {
  @Option(
      names = {"-c", "--collective"},
      paramLabel = "NAME",
      split = ",",
      defaultValue = ALL,
      description =
          "all, or some of all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all,"
              + " send-receive, grouped, with commas in between (default: ${DEFAULT-VALUE}).")
  private List<String> names;

  @Spec private CommandSpec spec;

  @Override
  public void checkOptions() {
    super.checkOptions();
    CommandLine perf = spec.commandLine().getParent();
    if (perf != null && !perf.getParseResult().matchedOptions().isEmpty()) {
      throw badUse("options follow the word collectives: gradient-sync perf collectives -e 64M");
    }
  }

  @Override
  List<PerfCollective> collectives() {
    Set<PerfCollective> chosen = new LinkedHashSet<>();
    for (String name : names) {
      if (name.equalsIgnoreCase(ALL)) {
        chosen.addAll(PerfCollective.ALL);
      } else {
        chosen.add(PerfCollective.of(name).orElseThrow(() -> noSuchCollective(name)));
      }
    }
    return List.copyOf(chosen);
  }

  private RuntimeException noSuchCollective(String name) {
    String all = String.join(", ", PerfCollective.ALL.stream().map(PerfCollective::name).toList());
    return badUse("--collective takes all, " + all + ": --collective " + name);
  }

  @Override
  void printNotes(GradientSync sync, PerfCollective collective) {
    print(sync, "#");
    print(sync, "# Collective: %s", collective);
  }

  @Override
  String program() {
    return "collectives-perf";
  }

  @Override
  String title() {
    return type.toString();
  }

  /** A line for each collective: in place where it can be. */
  @Override
  String line(PerfResult result, boolean several) {
    return result.inPlace() != result.collective().hasInPlace()
        ? null
        : result.collective() + (several ? ", " + result.reducer() : "");
  }
}
