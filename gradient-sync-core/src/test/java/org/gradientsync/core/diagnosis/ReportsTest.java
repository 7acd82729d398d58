package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.Logged;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The reports after a time-out, with ranks that are threads; LostRankIT tests processes. */
class ReportsTest {
  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void everyRankReportsItsActivity(int stuck) throws Exception {
    CountDownLatch others = new CountDownLatch(2);
    LocalRanks.run(
        3,
        options -> options.timeout(Duration.ofMillis(1500)).reports(folder.resolve("new")),
        sync -> {
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10).named("w")) {
            sync.average(buffer);
            if (sync.rank() == stuck) {
              waitInUserCode(others);
              return;
            }
            String message =
                assertThrows(RankLostException.class, () -> sync.average(buffer)).getMessage();
            assertTrue(message.contains("; reports=" + folder), message);
            others.countDown();
          }
        });
    Path job = only(folder.resolve("new"));
    Path reports = only(job);
    for (Path place : List.of(job, reports)) {
      assertEquals(
          "rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(place)));
    }
    for (int rank = 0; rank < 3; rank++) {
      String report = Files.readString(reports.resolve("rank-" + rank + ".txt"));
      assertTrue(report.contains("allReduce(FLOAT32[10] \"w\", AVERAGE), call=1, began"), report);
      assertTrue(report.contains("\"rank-1\" "), report);
      assertTrue(report.contains("java.version="), report);
    }
    List<String> summary = Files.readAllLines(reports.resolve("summary.txt"));
    assertEquals(3, summary.size(), summary::toString);
    for (int rank = 0; rank < 3; rank++) {
      String line = summary.get(rank);
      if (rank == stuck) {
        assertTrue(line.contains("is in no call since "), line);
        assertTrue(line.contains("waitInUserCode"), line);
      } else {
        assertTrue(line.contains("waits for rank " + stuck + " since "), line);
        assertTrue(line.contains("(FLOAT32[10] \"w\", AVERAGE), call=2"), line);
      }
    }
  }

  /**
   * With buckets, a worker thread makes the calls; users want to know where their own thread is.
   */
  @Test
  void aRankStuckBetweenBucketsReportsItsUserThread() throws Exception {
    CountDownLatch other = new CountDownLatch(1);
    LocalRanks.run(
        2,
        options -> options.timeout(Duration.ofMillis(1500)).reports(folder.resolve("buckets")),
        sync -> {
          List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 10));
          try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
            buckets.ready(0);
            buckets.finish();
            if (sync.rank() == 1) {
              waitInUserCode(other);
              return;
            }
            buckets.ready(0);
            assertThrows(RankLostException.class, buckets::finish);
            other.countDown();
          }
        });
    Path summary = only(only(folder.resolve("buckets"))).resolve("summary.txt");
    String line = Files.readAllLines(summary).get(1);
    assertTrue(line.contains("is in no call since "), line);
    assertTrue(line.contains("thread \"rank-1\"") && line.contains("waitInUserCode"), line);
  }

  @Test
  void aMissingReportFolderDoesNotHideTheTimeout() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "");
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    CountDownLatch over = new CountDownLatch(1);
    LocalRanks.run(
        2,
        options -> options.timeout(Duration.ofMillis(1500)).reports(file),
        sync -> {
          if (sync.rank() == 1) {
            over.await();
            return;
          }
          String message = assertThrows(RankLostException.class, sync::barrier).getMessage();
          over.countDown();
          assertTrue(message.contains("rank 1 (thread=rank-1) did not join in time"), message);
          assertTrue(message.contains("reports=" + temporary), message);
        });
  }

  @Test
  void theSummaryIsLoggedIfNoFolderCanBeCreated() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "");
    String temporary = System.setProperty("java.io.tmpdir", file.toString());
    try {
      CountDownLatch others = new CountDownLatch(2);
      List<String> log =
          Logged.lines(
              () ->
                  LocalRanks.run(
                      3,
                      options -> options.timeout(Duration.ofMillis(1500)).reports(file),
                      sync -> {
                        if (sync.rank() == 1) {
                          waitInUserCode(others);
                          return;
                        }
                        RankLostException e =
                            assertThrows(RankLostException.class, () -> sync.barrier());
                        assertFalse(e.getMessage().contains("reports="), e::getMessage);
                        others.countDown();
                      }));
      String all = String.join("\n", log);
      assertEquals(2, all.split("what each of 3 ranks was doing:", -1).length, all);
      assertTrue(all.contains("\n  rank 0 (thread=rank-0) "), all); // it, or rank 2, asks first
      assertTrue(all.contains("\n  rank 2 (thread=rank-2) "), all);
      assertTrue(all.contains("in barrier(), call=1"), all);
      assertTrue(all.contains("\n  rank 1 (thread=rank-1) has made no call, thread"), all);
      assertTrue(all.contains("waitInUserCode"), all);
      assertTrue(all.contains("\n  reports: none, because no folder can be created"), all);
      assertTrue(all.contains("FileAlreadyExistsException: " + file), all);
    } finally {
      System.setProperty("java.io.tmpdir", temporary);
    }
  }

  private static void waitInUserCode(CountDownLatch others) throws InterruptedException {
    others.await();
  }

  private static Path only(Path parent) throws Exception {
    try (Stream<Path> all = Files.list(parent)) {
      List<Path> paths = all.toList();
      assertEquals(1, paths.size(), paths::toString);
      return paths.get(0);
    }
  }
}
