package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.gradientsync.core.buckets.BucketSync;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.observation.Observer;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which reductions are reported to listeners and JDK Flight Recorder. */
@Timeout(60)
@SuppressWarnings("try") // what is closed early
class ObservationTest {
  private static final String EVENT = "org.gradientsync.Synchronization";
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 1000),
          new Parameter("b", DataType.FLOAT32, 10),
          new Parameter("c", DataType.FLOAT64, 100));

  @TempDir Path folder;

  @Test
  void aSyncSaysWhatItIs() {
    LocalRanks.run(
        2,
        sync ->
            assertEquals(
                "rank " + sync.rank() + " of 2, device host memory, reducer local",
                sync.toString()));
  }

  private static GradientBuckets build(GradientSync sync, boolean overlap) {
    return GradientBuckets.builder(sync, MODEL)
        .firstBucketBytes(1)
        .bucketBytes(1)
        .overlap(overlap)
        .build();
  }

  private static void step(GradientBuckets buckets) {
    for (int i = MODEL.size() - 1; i >= 0; i--) {
      buckets.ready(i);
    }
    buckets.finish();
  }

  /** Runs a step, two reductions, and another step. */
  private static void work(GradientSync sync, boolean overlap) {
    try (GradientBuckets buckets = build(sync, overlap);
        DeviceBuffer ints = sync.allocate(DataType.INT64, 7);
        DeviceBuffer halves = sync.allocate(DataType.BFLOAT16, 0)) {
      step(buckets);
      sync.allReduce(ints, ReduceOp.MAX);
      sync.broadcast(ints, 0); // not a reduction
      sync.average(halves);
      step(buckets);
    }
  }

  private static String what(Synchronization s) {
    return Stream.of(s.sequence(), s.bucket(), s.op(), s.type(), s.bytes(), s.reducer())
        .map(Object::toString)
        .collect(Collectors.joining(" "));
  }

  private static List<String> whatWorkDoes(int firstSequence) {
    List<String> step = List.of("0 AVERAGE FLOAT64 ", "1 AVERAGE FLOAT32 ", "2 AVERAGE FLOAT32 ");
    List<String> calls = List.of("-1 MAX INT64 ", "-1 AVERAGE BFLOAT16 ");
    List<String> all = Stream.of(step, calls, step).flatMap(List::stream).toList();
    long[] bytes = {bytesOf(2), bytesOf(1), bytesOf(0), 56, 0, bytesOf(2), bytesOf(1), bytesOf(0)};
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      expected.add(firstSequence + i + " " + all.get(i) + bytes[i] + " local");
    }
    return expected;
  }

  private static long bytesOf(int parameter) {
    long bytes = MODEL.get(parameter).count() * MODEL.get(parameter).type().sizeInBytes();
    long flags = parameter == 0 ? 256 : 0; // in the last bucket
    return (bytes + 255) / 256 * 256 + flags;
  }

  @ParameterizedTest
  @CsvSource({"1,true", "1,false", "2,true", "2,false", "3,true"})
  void everyCallAndBucketIsReportedOnceInOrder(int ranks, boolean overlap) {
    LocalRanks.run(
        ranks,
        sync -> {
          List<Synchronization> first = new ArrayList<>();
          List<Synchronization> second = new ArrayList<>();
          sync.observe(first::add);
          work(sync, overlap);
          sync.observe(second::add); // from here on
          work(sync, overlap);
          sync.close();
          List<String> expected = new ArrayList<>(whatWorkDoes(1));
          expected.addAll(whatWorkDoes(9));
          assertEquals(expected, first.stream().map(ObservationTest::what).toList());
          assertEquals(whatWorkDoes(9), second.stream().map(ObservationTest::what).toList());
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aListenerMustNotCallItsSync(int ranks) throws IOException {
    try (Recording recording = new Recording()) {
      recording.enable(EVENT);
      recording.start();
      LocalRanks.run(
          ranks,
          sync -> {
            List<Throwable> refused = new ArrayList<>();
            List<Runnable> calls;
            try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 3);
                GradientBuckets buckets = build(sync, true)) {
              calls =
                  List.of(
                      () -> sync.average(buffer),
                      () -> sync.broadcast(buffer, 0),
                      () -> sync.register(buffer),
                      () -> sync.averageAsync(buffer),
                      sync::barrier,
                      sync.communicator()::barrier,
                      buckets::close,
                      sync::survivors,
                      sync::close);
              sync.observe(
                  s ->
                      calls.forEach(call -> refused.add(assertThrows(Throwable.class, call::run))));
              sync.average(buffer);
              sync.averageAsync(buffer).await(); // on the communication thread
            }
            assertEquals(2 * calls.size(), refused.size());
            for (Throwable e : refused) {
              assertEquals(IllegalStateException.class, e.getClass());
              assertTrue(e.getMessage().startsWith("a listener called the sync "), e::toString);
              assertTrue(e.getMessage().contains("rank=" + sync.rank()), e::toString);
            }
          });
      recording.stop();
      recording.dump(folder.resolve("refused.jfr"));
    }
    assertEquals(2 * ranks, events(folder.resolve("refused.jfr")).size());
  }

  @ParameterizedTest
  @CsvSource({"1,true", "1,false", "2,true", "2,false", "3,true"})
  void timesAreConsistent(int ranks, boolean overlap) {
    LocalRanks.run(
        ranks,
        sync -> {
          Event before = ((BucketSync) sync).backend().createEvent(true);
          Event after = ((BucketSync) sync).backend().createEvent(true);
          before.record(((BucketSync) sync).backend().stream());
          List<Synchronization> heard = new ArrayList<>();
          Event origin = sync.observe(heard::add);
          for (int i = 0; i < 50; i++) {
            work(sync, overlap);
          }
          after.record(((BucketSync) sync).backend().stream());
          assertTrue(before.millisecondsTo(origin) >= 0);
          double last = 0;
          for (Synchronization s : heard) {
            assertTrue(s.startedAt() >= last, () -> s + " in " + heard);
            assertTrue(s.queued() >= 0 && s.queued() <= s.startedAt(), s::toString);
            assertTrue(s.duration() >= 0, s::toString);
            assertTrue(s.exposed() >= 0 && s.exposed() <= s.duration(), s::toString);
            if (!overlap || s.bucket() < 0) {
              assertEquals(s.duration(), s.exposed(), s::toString);
            }
            last = s.startedAt() + s.duration() - 1e-6; // ends before the next one begins
          }
          assertTrue(last <= origin.millisecondsTo(after));
          assertEquals(50 * 8, heard.size());
        });
  }

  @Test
  void overlappedAveragesAreNotExposed() {
    CountDownLatch inFinish = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          List<Synchronization> heard = new ArrayList<>();
          sync.observe(heard::add);
          try (GradientBuckets buckets = build(sync, true)) {
            buckets.ready(2);
            buckets.ready(1);
            ((BucketSync) sync)
                .communicationThread()
                .awaitAll(); // the backward pass takes longer than these two
            if (sync.rank() == 1) {
              inFinish.await();
            }
            buckets.ready(0);
            int[] seen = {0};
            buckets.finish(
                parameter -> {
                  if (seen[0]++ == 0) { // an update that overlaps with the other averages
                    inFinish.countDown();
                    ((BucketSync) sync).communicationThread().awaitAll();
                  }
                });
          }
          assertEquals(3, heard.size());
          for (Synchronization s : heard) {
            assertEquals(0, s.exposed(), s::toString);
          }
        });
  }

  @Test
  void averagesWithoutOverlapAreExposed() {
    CountDownLatch late = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          List<Synchronization> heard = new ArrayList<>();
          sync.observe(heard::add);
          try (GradientBuckets buckets = build(sync, true)) {
            if (sync.rank() == 1) {
              late.await();
            }
            buckets.ready(2);
            buckets.ready(1);
            buckets.ready(0);
            if (sync.rank() == 0) {
              Thread finisher = Thread.currentThread();
              Thread other =
                  new Thread(
                      () -> {
                        while (finisher.getState() != Thread.State.WAITING) {
                          Thread.onSpinWait(); // until it waits for rank 1
                        }
                        late.countDown();
                      });
              other.start();
            }
            buckets.finish();
          }
          assertTrue(sync.rank() == 1 || heard.get(0).exposed() > 0, heard::toString);
        });
  }

  @Test
  void failedCallsAreNotReportedAndDoNotBlockLaterOnes() {
    LocalRanks.run(
        2,
        sync -> {
          List<Synchronization> heard = new ArrayList<>();
          sync.observe(heard::add);
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 3 + sync.rank());
              DeviceBuffer same = sync.allocate(DataType.FLOAT32, 5)) {
            assertThrows(MismatchedCallException.class, () -> sync.average(buffer));
            sync.average(same);
            assertEquals(
                List.of("2 -1 AVERAGE FLOAT32 20 local"),
                heard.stream().map(ObservationTest::what).toList());
          }
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void failedStepsAreNotReportedAndDoNotBlockLaterCalls(boolean overlap) {
    LocalRanks.run(
        2,
        sync -> {
          List<Synchronization> heard = new ArrayList<>();
          sync.observe(heard::add);
          GradientBuckets buckets = build(sync, overlap);
          assertThrows(
              MismatchedCallException.class,
              () -> {
                if (sync.rank() == 0) {
                  step(buckets);
                } else {
                  sync.barrier();
                }
              });
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5)) {
            observe(sync, buffer); // a call of the sync finds the failure of the thread again
          }
          assertEquals(1, heard.size(), heard::toString);
          assertEquals(-1, heard.get(0).bucket());
          buckets.close();
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aCancelledStepDoesNotBlockLaterCalls(boolean overlap) {
    LocalRanks.run(
        1,
        sync -> {
          List<Synchronization> heard = new ArrayList<>();
          sync.observe(heard::add);
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5)) {
            try (GradientBuckets buckets = build(sync, overlap)) {
              buckets.ready(2);
            }
            try (GradientBuckets buckets = build(sync, overlap)) {
              for (int i = 0; i < MODEL.size(); i++) {
                buckets.ready(i);
              }
              assertThrows(
                  ArithmeticException.class,
                  () ->
                      buckets.finish(
                          parameter -> {
                            throw new ArithmeticException("mine");
                          }));
            }
            heard.clear();
            sync.average(buffer);
          }
          assertEquals(-1, heard.get(heard.size() - 1).bucket(), heard::toString);
        });
  }

  @Test
  void aListenerThatThrowsBreaksNothing() {
    List<String> lines =
        Logged.lines(
            () ->
                LocalRanks.run(
                    2,
                    sync -> {
                      List<Synchronization> heard = new ArrayList<>();
                      int[] calls = {0};
                      sync.observe(
                          s -> {
                            calls[0]++;
                            boolean declared = calls[0] % 2 == 0;
                            ObservationTest.<Error>raise(
                                declared ? new ArithmeticException() : new IOException());
                          });
                      sync.observe(heard::add);
                      work(sync, true);
                      assertEquals(8, calls[0]);
                      assertEquals(8, heard.size());
                    }));
    assertEquals(2, lines.stream().filter(l -> l.contains("a listener threw")).count());
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> void raise(Throwable thrown) throws T {
    throw (T) thrown;
  }

  @Test
  void aSummaryIsLoggedWhenTheSyncEnds() {
    List<String> lines =
        Logged.lines(
            () ->
                LocalRanks.run(
                    2,
                    sync -> {
                      try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT64, 250_000)) {
                        sync.average(buffer);
                        sync.average(buffer);
                      }
                    }));
    List<String> summaries = lines.stream().filter(l -> l.contains(" in all, by ")).toList();
    assertEquals(1, summaries.size(), lines::toString); // the other one is on DEBUG
    assertTrue(
        summaries.get(0).endsWith(" - rank 0 of 2: 2 reductions, 4 MB in all, by local"),
        summaries::toString);
    assertTrue(summaries.get(0).contains("INFO"), summaries::toString);
  }

  @Test
  void theSummaryHasTheObservedTimes() {
    LocalRanks.run(
        2,
        sync -> {
          assertEquals("", ((BucketSync) sync).observer().summary());
          sync.average(new float[1]);
          assertEquals(
              "1 reduction, 4 B in all, by local", ((BucketSync) sync).observer().summary());
          work(sync, false);
          sync.observe(s -> {});
          work(sync, false);
          String summary = ((BucketSync) sync).observer().summary();
          assertTrue(
              summary.matches(
                  "17 reductions, [0-9.]+ K?B in all, by local; of 8 observed: [0-9.]+ (us|ms) each"
                      + " on the device, 100\\.0% of it exposed"),
              summary);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void flightRecorderGetsTheSameData(boolean overlap) throws IOException {
    Path file = folder.resolve("r.jfr");
    List<Synchronization> heard = Collections.synchronizedList(new ArrayList<>());
    LocalRanks.run(1, sync -> work(sync, overlap)); // before there is a recording
    try (Recording recording = new Recording()) {
      recording.enable(EVENT);
      recording.start();
      LocalRanks.run(
          1,
          sync -> {
            sync.observe(heard::add);
            work(sync, overlap);
          });
      recording.stop();
      LocalRanks.run(1, sync -> work(sync, overlap)); // after it
      recording.dump(file);
    }
    List<RecordedEvent> events = events(file);
    assertEquals(8, events.size());
    for (int i = 0; i < 8; i++) {
      RecordedEvent event = events.get(i);
      Synchronization s = heard.get(i);
      assertEquals(s.sequence(), event.getLong("sequence"));
      assertEquals(s.bucket(), event.getInt("bucket"));
      assertEquals(s.op().name(), event.getString("operation"));
      assertEquals(s.type().name(), event.getString("elementType"));
      assertEquals(s.bytes(), event.getLong("bytes"));
      assertEquals(s.reducer(), event.getString("reducer"));
      assertEquals(Math.round(s.queued() * 1e6), event.getDuration("queued").toNanos(), 1);
      assertEquals(Math.round(s.duration() * 1e6), event.getDuration("device").toNanos(), 1);
      assertEquals(Math.round(s.exposed() * 1e6), event.getDuration("exposed").toNanos(), 1);
    }
  }

  @Test
  void flightRecorderNeedsNoListener() throws IOException {
    Path file = folder.resolve("r.jfr");
    try (Recording recording = new Recording()) {
      recording.enable(EVENT);
      recording.start();
      LocalRanks.run(3, sync -> work(sync, true));
      recording.stop();
      recording.dump(file);
    }
    List<RecordedEvent> events = events(file);
    for (int rank = 0; rank < 3; rank++) {
      int each = rank;
      assertEquals(8, events.stream().filter(e -> e.getInt("rank") == each).count());
    }
    assertEquals(3 * 8, events.size());
  }

  @Test
  void aRecordingOfOtherEventsGetsNothing() throws IOException {
    Path file = folder.resolve("r.jfr");
    try (Recording recording = new Recording()) {
      recording.disable(EVENT);
      recording.start();
      LocalRanks.run(
          2,
          sync -> {
            List<Synchronization> heard = new ArrayList<>();
            sync.observe(heard::add);
            work(sync, true);
            assertEquals(8, heard.size());
          });
      recording.stop();
      recording.dump(file);
    }
    assertEquals(List.of(), events(file));
  }

  private static List<RecordedEvent> events(Path file) throws IOException {
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().equals(EVENT))
        .toList();
  }

  @Test
  void nothingIsAllocatedWithoutListeners() {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    LocalRanks.run(
        1,
        sync -> {
          Observer observer = ((BucketSync) sync).observer();
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 4)) {
            for (int i = 0; i < 50; i++) {
              begin(sync, buffer);
            }
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 1000; i++) {
              begin(sync, buffer);
            }
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            // A long wait allocates a little; one object per call would be 16,000.
            assertTrue(allocated < 6000, "bytes allocated in 1000 calls: " + allocated);
          }
          assertTrue(observer.summary().startsWith("1050 reductions, "), observer.summary());
        });
  }

  private static void begin(GradientSync sync, DeviceBuffer buffer) {
    assertNull(
        ((BucketSync) sync)
            .observer()
            .begin(buffer, ((BucketSync) sync).backend().stream(), ReduceOp.SUM, -1));
    ((BucketSync) sync).observer().deliver(((BucketSync) sync).backend().stream());
  }

  @Test
  void observingAllocatesNoEventsWhenWarm() {
    LocalRanks.run(
        1,
        sync -> {
          BackendDevice device = ((BucketSync) sync).backend();
          assertTrue(device instanceof HostDevice);
          sync.observe(s -> {});
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 4)) {
            Observer.Observation first = observe(sync, buffer);
            for (int i = 0; i < 10; i++) {
              assertTrue(first == observe(sync, buffer), "is used again");
            }
          }
        });
  }

  private static Observer.Observation observe(GradientSync sync, DeviceBuffer buffer) {
    Observer.Observation observation =
        ((BucketSync) sync)
            .observer()
            .begin(buffer, ((BucketSync) sync).backend().stream(), ReduceOp.SUM, -1);
    observation.complete();
    ((BucketSync) sync).observer().deliver(((BucketSync) sync).backend().stream());
    return observation;
  }

  @Test
  void aClosedSyncIsNotObserved() {
    GradientSync sync = GradientSync.create();
    sync.close();
    assertThrows(IllegalStateException.class, () -> sync.observe(s -> {}));
    assertThrows(NullPointerException.class, () -> sync.observe(null));
  }

  /** The program for a JDK without Flight Recorder. */
  public static final class Alone {
    private Alone() {}

    /**
     * Runs the program.
     *
     * @param args none
     */
    public static void main(String[] args) {
      List<Synchronization> heard = new ArrayList<>();
      LocalRanks.run(
          1,
          sync -> {
            sync.observe(heard::add);
            work(sync, true);
          });
      System.out.println(
          "recorder="
              + ModuleLayer.boot().findModule("jdk.jfr").isPresent()
              + ", heard="
              + heard.size());
    }
  }

  @Test
  void worksWithoutFlightRecorder() throws IOException, InterruptedException {
    assertArrayEquals(new String[] {"recorder=false, heard=8"}, child("java.base,jdk.unsupported"));
    assertArrayEquals(new String[] {"recorder=true, heard=8"}, child("jdk.jfr,jdk.unsupported"));
  }

  private static String[] child(String modules) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--limit-modules",
                modules,
                "-cp",
                System.getProperty("java.class.path"),
                Alone.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), out);
    assertFalse(out.isBlank());
    return out.lines().toArray(String[]::new);
  }
}
