package org.gradientsync.examples;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.GradientSync;
import org.gradientsync.tools.perf.PerfJson;
import org.gradientsync.tools.program.NewFile;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Option;

/** The options of {@link TrainMlp} for output files, which rank 0 writes at the end. */
final class MlpFiles {
  private static final int MOST_STEPS = 1000;

  @Option(
      names = "--timeline",
      paramLabel = "FILE",
      description =
          "Write what each rank computes and averages in the last steps, for chrome://tracing or"
              + " Perfetto; implies --exposed.")
  private Path timeline;

  @Option(names = "--timeline-plot", paramLabel = "FILE.svg", description = "Draw the same there.")
  private Path timelinePlot;

  @Option(
      names = "--timeline-steps",
      paramLabel = "N",
      defaultValue = "5",
      description = "How many steps a timeline shows (default: ${DEFAULT-VALUE}).")
  private int timelineSteps;

  @Option(names = "--json", paramLabel = "FILE", description = "Write the results there as JSON.")
  private Path json;

  @Option(names = "--plot", paramLabel = "FILE.svg", description = "Draw the loss there.")
  private Path plot;

  /**
   * Refuses invalid options.
   *
   * @param checkpoint another output file, or null
   */
  void check(Program program, Path checkpoint) {
    program.requireSvg("--plot", plot);
    program.requireSvg("--timeline-plot", timelinePlot);
    program.requireDifferentFiles(json, plot, checkpoint, timeline, timelinePlot);
    program.requireAtLeast(1, "--timeline-steps", timelineSteps);
    program.requireAtMost(MOST_STEPS, "--timeline-steps", timelineSteps);
  }

  boolean canWrite(Program program) {
    return program.canWrite(json)
        && program.canWrite(plot)
        && program.canWrite(timeline)
        && program.canWrite(timelinePlot);
  }

  boolean hasTimeline() {
    return timeline != null || timelinePlot != null;
  }

  /** Creates the timeline of the last steps, or returns null. Collective. */
  Timeline timeline(GradientSync sync, MlpEngine engine, int steps, int accumulate) {
    return timeline == null && timelinePlot == null
        ? null
        : new Timeline(sync, engine, Math.min(steps, timelineSteps), accumulate);
  }

  boolean write(
      Program program, Map<String, Object> results, String title, List<MlpTrainer.Loss> losses) {
    return program.write(
        "the results: " + Program.names(json, plot),
        plot,
        () -> {
          if (json != null) {
            Map<String, Object> all = new LinkedHashMap<>(results);
            all.put("losses", losses.stream().map(l -> List.of(l.step(), l.loss())).toList());
            NewFile.write(json, PerfJson.of(all));
          }
          if (plot != null) {
            LossPlot.write(plot, title, losses);
          }
        });
  }

  boolean writeTimeline(Program program, String title, int ranks, List<TimelineEvent> events) {
    return program.write(
        "the timeline: " + Program.names(timeline, timelinePlot),
        timelinePlot,
        () -> {
          if (timeline != null) {
            NewFile.write(timeline, TimelineJson.of(ranks, events));
          }
          if (timelinePlot != null) {
            TimelinePlot.write(timelinePlot, title, ranks, events);
          }
        });
  }
}
