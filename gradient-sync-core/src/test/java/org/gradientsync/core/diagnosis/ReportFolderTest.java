package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What ranks leave for each other in a folder of reports. */
class ReportFolderTest {
  private static final long GROUP = 0x123456789abcdefL;

  @TempDir Path base;
  private final long job = ThreadLocalRandom.current().nextLong();

  @Test
  void aRequestIsSeenByAllGroupsOfTheJobAndMeantForOne() {
    ReportFolder own = folder(base);
    ReportFolder other = new ReportFolder(base, job, -7);
    assertEquals(own.places(), other.places());
    assertFalse(own.places().stream().anyMatch(ReportFolder::isThere));
    Path where = own.ask();
    assertEquals(where, folder(base).where());
    assertTrue(other.places().stream().anyMatch(ReportFolder::isThere));
    assertNull(other.where());
    assertNull(new ReportFolder(base, job + 1, GROUP).where());
  }

  @Test
  void aLinkInThePlaceOfTheFolderIsNoRequest() throws Exception {
    Path elsewhere = Files.createDirectory(base.resolve("elsewhere"));
    Files.createSymbolicLink(folder(base).places().get(0), elsewhere);
    assertFalse(folder(base).places().stream().anyMatch(ReportFolder::isThere));
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    Path where = folder(base).ask();
    assertTrue(where.startsWith(temporary.toAbsolutePath()), where::toString);
    Files.delete(where);
    Files.delete(where.getParent());
  }

  @Test
  void aReportThatCannotBeWrittenIsNoReport() throws Exception {
    ReportFolder full = folder(base);
    Path where = full.ask();
    Files.createSymbolicLink(where.resolve("rank-1.txt.part"), Path.of("/dev/full"));
    assertThrows(IOException.class, () -> full.write(1, List.of("a line")));
    assertNull(folder(base).firstLine(1));
  }

  @Test
  void aLineForARankReplacesNoReport() throws Exception {
    ReportFolder folder = folder(base);
    folder.ask();
    folder.write(1, List.of("its own", "more"));
    folder.writeOnce(1, "has died");
    folder.writeOnce(2, "has died");
    assertEquals("its own", folder.firstLine(1));
    assertEquals("has died", folder.firstLine(2));
  }

  /** As on Windows: a zip file is a file system without POSIX permissions. */
  @Test
  void aFileSystemWithoutPermissionsHoldsReportsToo() throws Exception {
    try (FileSystem zip =
        FileSystems.newFileSystem(base.resolve("reports.zip"), Map.of("create", "true"))) {
      assertFalse(zip.supportedFileAttributeViews().contains("posix"));
      Path there = zip.getPath("/reports");
      ReportFolder own = folder(there);
      Path where = own.ask();
      assertEquals(there, where.getParent().getParent());
      own.write(1, List.of("a line", "more"));
      ReportFolder other = folder(there);
      assertEquals("a line", other.firstLine(1));
      assertTrue(other.writeSummary(List.of("all")));
      assertFalse(own.writeSummary(List.of("another")));
      assertEquals("all\n", Files.readString(where.resolve("summary.txt")));
    }
  }

  private ReportFolder folder(Path where) {
    return new ReportFolder(where, job, GROUP);
  }
}
