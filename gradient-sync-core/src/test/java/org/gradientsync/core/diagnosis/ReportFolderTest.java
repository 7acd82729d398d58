package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What ranks leave for each other in a folder of reports. */
@Timeout(60)
class ReportFolderTest {
  private static final long ID = 0x123456789abcdefL;

  @TempDir Path base;

  @Test
  void aReportThatCannotBeWrittenLeavesAReason() throws Exception {
    ReportFolder full = new ReportFolder(base, new LocalReports(), ID, 1);
    Path where = full.ask();
    Files.createSymbolicLink(where.resolve("rank-1.txt.part"), Path.of("/dev/full"));
    ReportFolder other = new ReportFolder(base, new LocalReports(), ID, 0);
    assertNull(other.firstLine(1));
    full.answer(() -> List.of("a line"));
    while (!other.has(1)) {
      Thread.sleep(1); // ends when the test times out
    }
    String line = other.firstLine(1);
    assertTrue(line.startsWith("could not write its report: "), line);
    assertTrue(line.contains("No space left on device"), line);
    other.answer(() -> List.of("another"));
    while (!full.has(0)) {
      Thread.sleep(1); // ends when the test times out
    }
    assertEquals("another", full.firstLine(0));
  }

  /** As on Windows: a zip file is a file system without POSIX permissions. */
  @Test
  void aFileSystemWithoutPermissionsHoldsReportsToo() throws Exception {
    try (FileSystem zip =
        FileSystems.newFileSystem(base.resolve("reports.zip"), Map.of("create", "true"))) {
      assertFalse(zip.supportedFileAttributeViews().contains("posix"));
      Path there = zip.getPath("/reports");
      ReportFolder own = new ReportFolder(there, new LocalReports(), ID, 1);
      Path where = own.ask();
      assertEquals(there, where.getParent());
      own.answer(() -> List.of("a line", "more"));
      ReportFolder other = new ReportFolder(there, new LocalReports(), ID, 0);
      while (!other.has(1)) {
        Thread.sleep(1); // ends when the test times out
      }
      assertEquals("a line", other.firstLine(1));
      assertTrue(other.leaveSummaryTo(0, "rank 0"));
      assertFalse(own.leaveSummaryTo(1, "rank 1"));
      assertEquals(0, own.summarizer());
      other.writeSummary(List.of("all"));
      assertEquals("all\n", Files.readString(where.resolve("summary.txt")));
      Bell bell = new Bell(there, ID, 0, 2);
      bell.ring(ID);
      assertTrue(Files.isDirectory(bell.place()), "rings there");
      bell.silence(ID);
    }
  }
}
