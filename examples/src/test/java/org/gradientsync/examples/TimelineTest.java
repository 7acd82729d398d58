package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.DoubleStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYSeries;

/** Tests what train-mlp reports about the times within its steps. */
@Timeout(120)
class TimelineTest {
  private static final Pattern NAME = Pattern.compile("([a-z]+)(?: (?:layer|bucket)(\\d+))?");
  private static final int LAYERS = 3;

  @TempDir Path folder;

  /** An event as read from the file. */
  private record Shown(
      String name, int number, double start, double end, int rank, int row, int step) {}

  private static List<Shown> read(Path file) throws IOException {
    List<Shown> events = new ArrayList<>();
    for (Object each : (List<?>) JSON.std.mapFrom(Files.readString(file)).get("traceEvents")) {
      Map<?, ?> event = (Map<?, ?>) each;
      if (!event.get("ph").equals("X")) {
        continue;
      }
      Map<?, ?> details = (Map<?, ?>) event.get("args");
      Matcher name = NAME.matcher((String) event.get("name"));
      assertTrue(name.matches(), event::toString);
      double start = (double) event.get("ts");
      events.add(
          new Shown(
              name.group(1),
              name.group(2) == null ? 0 : Integer.parseInt(name.group(2)),
              start,
              start + (double) event.get("dur"),
              (int) event.get("pid"),
              (int) event.get("tid"),
              (int) details.get("step")));
      assertEquals(name.group(1), event.get("cat"));
      assertEquals(name.group(1).equals("average"), details.containsKey("bytes"));
    }
    return events;
  }

  private static List<Shown> of(List<Shown> events, String name, int number) {
    return events.stream().filter(e -> e.name.equals(name) && e.number == number).toList();
  }

  @ParameterizedTest
  @CsvSource({"1,true,1", "2,true,1", "2,true,2", "2,false,2", "3,true,1"})
  void showsTheLastStepsOfEveryRank(int ranks, boolean overlap, int accumulate) throws IOException {
    Path json = folder.resolve("t.json");
    Path plot = folder.resolve("t.svg");
    Run.of(
            new TrainMlp(),
            "--local=" + ranks,
            "--widths=6,12,9,4",
            "--rows=5",
            "--steps=12",
            "--accumulate=" + accumulate,
            "--first-bucket-mb=0.0001",
            "--bucket-mb=0.0001", // one bucket for each layer
            overlap ? "--overlap" : "--no-overlap",
            "--timeline=" + json,
            "--timeline-plot=" + plot,
            "--timeline-steps=2")
        .exits(0)
        .prints("[PASS] All ranks have identical weights.");
    List<Shown> all = read(json);
    assertEquals(0, all.stream().mapToDouble(Shown::start).min().orElseThrow());
    for (int rank = 0; rank < ranks; rank++) {
      for (int step = 10; step < 12; step++) {
        int r = rank;
        int s = step;
        checkStep(
            all.stream().filter(e -> e.rank == r && e.step == s).toList(), overlap, accumulate);
      }
      checkRows(all, rank);
    }
    assertEquals(ranks * 2 * (accumulate * (1 + LAYERS) + 2 * LAYERS), all.size());
    String svg = Files.readString(plot);
    assertTrue(svg.strip().endsWith("</svg>"), svg);
    assertTrue(svg.split("stroke-width:22", -1).length > all.size(), svg); // one line per bar
    assertTrue(svg.contains(">step 10</text>") && svg.contains(">step 11</text>"), svg);
  }

  @Test
  void stepsAreMarkedAndEveryColourIsInTheLegend() {
    List<TimelineEvent> events = new ArrayList<>();
    for (int number = 0; number < 4; number++) {
      TimelineEvent.Kind kind = TimelineEvent.Kind.BACKWARD;
      int step = 7 + number / 2;
      events.add(new TimelineEvent(1, kind, number, step, 10 + number, 1, 0, 0, 0));
      events.add(new TimelineEvent(0, kind, number, step, 9 + number, 1, 0, 0, 0));
    }
    assertEquals(Map.of(7L, 9.0, 8L, 11.0), TimelinePlot.stepStarts(events));
    XYChart chart = TimelinePlot.chart("title", 4, 300, events);
    assertEquals(
        List.of("backward", "backward, odd layers"),
        chart.getSeriesCollection().stream().map(XYSeries::getName).toList());
    assertTrue(chart.getSeriesCollection().stream().allMatch(XYSeries::isShowInLegend));
  }

  @Test
  void rowsOfThePlotHaveNames() {
    assertEquals("rank 0 compute", TimelinePlot.name(0));
    assertEquals("rank 0 averages", TimelinePlot.name(1));
    assertEquals("rank 3 compute", TimelinePlot.name(6));
    assertEquals("rank 3 averages", TimelinePlot.name(7));
  }

  private static void checkStep(List<Shown> step, boolean overlap, int accumulate) {
    assertEquals(accumulate, of(step, "forward", 0).size(), step::toString);
    for (int layer = 0; layer < LAYERS; layer++) {
      List<Shown> backward = of(step, "backward", layer);
      List<Shown> average = of(step, "average", LAYERS - 1 - layer);
      List<Shown> update = of(step, "update", layer);
      assertEquals(accumulate, backward.size(), step::toString);
      assertEquals(1, average.size(), step::toString);
      assertEquals(1, update.size(), step::toString);
      double ready = of(step, "backward", overlap ? layer : 0).get(accumulate - 1).end;
      assertTrue(average.get(0).start >= ready - 0.002, step::toString);
      assertTrue(update.get(0).start >= average.get(0).end - 0.002, step::toString);
    }
  }

  private static void checkRows(List<Shown> all, int rank) {
    for (int row = 0; row < 2; row++) {
      int number = row;
      List<Shown> events =
          all.stream()
              .filter(e -> e.rank == rank && e.row == number)
              .sorted(Comparator.comparingDouble(Shown::start))
              .toList();
      double end = 0;
      for (Shown event : events) {
        assertEquals(number == 1, event.name.equals("average"));
        assertTrue(event.start >= end - 0.002, events::toString); // in sequence
        assertTrue(event.end >= event.start, events::toString);
        end = event.end;
      }
    }
  }

  @Test
  void aTimelineHasNoMoreStepsThanTheTraining() throws IOException {
    Path json = folder.resolve("t.json");
    Run.of(new TrainMlp(), "--local=2", "--width=8", "--steps=3", "--timeline=" + json).exits(0);
    assertEquals(List.of(0, 1, 2), read(json).stream().map(Shown::step).distinct().toList());
    Path checkpoint = folder.resolve("c");
    Run.of(new TrainMlp(), "--width=8", "--steps=3", "--checkpoint=" + checkpoint).exits(0);
    Run.of(new TrainMlp(), "--width=8", "--steps=5", "--resume=" + checkpoint, "--timeline=" + json)
        .exits(0);
    assertEquals(List.of(3, 4), read(json).stream().map(Shown::step).distinct().toList());
  }

  @Test
  void observedTrainingHasTheSameBits() throws IOException {
    String[] options = {"--widths=6,12,9,4", "--rows=5", "--steps=12", "--bucket-mb=0.0001"};
    Trained plain = Trained.run(folder, 2, options);
    List<String> observed = new ArrayList<>(List.of(options));
    observed.add("--timeline=" + folder.resolve("t.json"));
    assertEquals(plain, Trained.run(folder, 2, observed.toArray(String[]::new)));
  }

  @ParameterizedTest
  @CsvSource({"1,true", "2,true", "2,false"})
  void tellsWhatIsExposed(int ranks, boolean overlap) throws IOException {
    Path json = folder.resolve("r.json");
    String[] options = {
      "--local=" + ranks,
      "--width=16",
      "--steps=20",
      overlap ? "--overlap" : "--no-overlap",
      "--json=" + json
    };
    Run plain = Run.of(new TrainMlp(), options).exits(0);
    assertFalse(plain.out().contains("exposed"), plain::toString);
    assertFalse(Files.readString(json).contains("exposed"));
    List<String> observed = new ArrayList<>(List.of(options));
    observed.add("--exposed");
    Run.of(new TrainMlp(), observed.toArray(String[]::new))
        .exits(0)
        .printsLike(
            "Averaging: [0-9.]+ (us|ms|s) in a step, [0-9.]+ (us|ms|s) of it exposed \\("
                + (overlap ? "[0-9.]+" : "100\\.0")
                + "%\\), mean over the ranks");
    Map<String, Object> results = JSON.std.mapFrom(Files.readString(json));
    double averaging = (double) results.get("averagingMillisecondsPerStep");
    double exposed = (double) results.get("exposedMillisecondsPerStep");
    assertTrue(averaging > 0 && exposed >= 0 && exposed <= averaging, results::toString);
    assertEquals(exposed / averaging, (double) results.get("exposedShare"), 1e-9);
  }

  @Test
  void clocksAreSetRightByTheEndsOfAverages() {
    double[] first = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    double[] other = DoubleStream.of(first).map(time -> time + 1000).toArray();
    other[3] += 50; // this rank noticed the end late
    assertEquals(1000, Timeline.ahead(first, other));
    TimelineEvent event =
        new TimelineEvent(0, TimelineEvent.Kind.AVERAGE, 2, 7, 20, 3, 4096, 0.5, 0.25);
    TimelineEvent same =
        new TimelineEvent(1, TimelineEvent.Kind.AVERAGE, 2, 7, 1020, 3, 4096, 0.5, 0.25);
    TimelineEvent later = new TimelineEvent(1, TimelineEvent.Kind.BACKWARD, 1, 8, 1024, 3, 0, 0, 0);
    int size = (first.length + 1) * Double.BYTES + 2 * TimelineEvent.BYTES;
    ByteBuffer all = ByteBuffer.allocate(2 * size);
    DoubleStream.of(first).forEach(all::putDouble);
    event.put(all.putLong(1));
    all.position(size);
    DoubleStream.of(other).forEach(all::putDouble);
    same.put(all.putLong(2));
    later.put(all);
    assertEquals(
        List.of(event.earlierBy(20), same.earlierBy(1020), later.earlierBy(1020)),
        Timeline.merge(all, size));
  }
}
