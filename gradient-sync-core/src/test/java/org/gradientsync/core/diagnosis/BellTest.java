package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which processes a rank wakes when it requests reports. */
class BellTest {
  private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir"));
  private static final int RANKS = 4; // of the node
  private static final long GROUP = -7;
  private static final long OTHER = 9;

  @TempDir Path base;
  private final long job = ThreadLocalRandom.current().nextLong();
  private final String name = "gradient-sync-bell-" + Long.toHexString(job);

  @Test
  void everyProcessOfTheNodeSeesItInEachPeriod() throws Exception {
    bell(0).ring(GROUP);
    bell(1).ring(OTHER);
    for (int turn = 0; turn < RANKS; turn++) {
      for (int period = 0; period < RANKS; period++) {
        assertEquals(Set.of(GROUP, OTHER), bell(turn).look(period));
      }
    }
    assertEquals(
        "rwx------",
        PosixFilePermissions.toString(Files.getPosixFilePermissions(base.resolve(name))));
    bell(1).silence(OTHER);
    assertEquals(Set.of(GROUP), bell(3).look(3));
    bell(1).silence(GROUP);
    assertEquals(Set.of(), bell(3).look(3));
    requireNothingLeft();
  }

  @Test
  void bellsOfOtherNodesAreForwardedWhileTheyRing() throws Exception {
    Bell first = bell(0);
    ringElsewhere(GROUP);
    assertEquals(Set.of(), bell(1).look(0));
    assertEquals(Set.of(GROUP), first.look(0));
    assertEquals(Set.of(GROUP), bell(1).look(0));
    endElsewhere(GROUP);
    assertEquals(Set.of(), first.look(4));
    assertEquals(Set.of(), bell(1).look(4));
    requireNothingLeft();
  }

  @Test
  void leavingStopsForwarding() throws Exception {
    Bell first = bell(0);
    ringElsewhere(GROUP);
    first.look(0);
    first.leave(GROUP);
    assertEquals(Set.of(), bell(1).look(0));
    endElsewhere(GROUP);
    requireNothingLeft();
  }

  @Test
  void ringsInTheTemporaryFolderWithoutAReportFolder() throws Exception {
    Path file = Files.writeString(base.resolve("file"), "");
    Bell bell = new Bell(file, job, 0, 1);
    bell.ring(GROUP);
    assertEquals(Set.of(), bell.look(0));
    assertEquals(Set.of(GROUP), bell.look(1));
    bell.silence(GROUP);
    assertEquals(Set.of(), bell.look(1));
    requireNothingLeft();
  }

  @Test
  void unrelatedFilesAreIgnored() throws Exception {
    Path elsewhere = Files.createDirectory(base.resolve("elsewhere"));
    Files.createFile(elsewhere.resolve(Long.toHexString(GROUP)));
    Files.createSymbolicLink(base.resolve(name), elsewhere);
    assertEquals(Set.of(), bell(0).look(0));
    Files.delete(base.resolve(name));
    Files.createDirectory(base.resolve(name));
    Files.createFile(base.resolve(name).resolve("not a number"));
    assertEquals(Set.of(), bell(0).look(0));
  }

  private Bell bell(int turn) {
    return new Bell(base, job, turn, RANKS);
  }

  /** By a process with another temporary folder. */
  private void ringElsewhere(long group) throws Exception {
    Path place = Files.createDirectory(base.resolve(name));
    Files.createFile(place.resolve(Long.toHexString(group)));
  }

  private void endElsewhere(long group) throws Exception {
    Path place = base.resolve(name);
    Files.delete(place.resolve(Long.toHexString(group)));
    Files.delete(place);
  }

  private void requireNothingLeft() {
    assertFalse(Files.exists(base.resolve(name)));
    assertFalse(Files.exists(TEMPORARY.resolve(name)));
  }
}
