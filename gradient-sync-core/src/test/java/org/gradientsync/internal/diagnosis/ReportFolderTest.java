package org.gradientsync.internal.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
    ReportFolder full = new ReportFolder(base, ID, 1);
    Path where = full.ask();
    Files.createSymbolicLink(where.resolve("rank-1.txt.part"), Path.of("/dev/full"));
    ReportFolder other = new ReportFolder(base, ID, 0);
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
}
