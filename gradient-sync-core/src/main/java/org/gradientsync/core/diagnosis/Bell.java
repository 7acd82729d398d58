package org.gradientsync.core.diagnosis;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import org.gradientsync.core.host.OwnFiles;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Wakes the other processes of a job when a rank requests reports. A bell is a folder whose name
 * all ranks of the job know, with an empty file for each group that is asked. So each process
 * watches one place, however many groups it has. The folder exists only while a rank waits for
 * reports.
 *
 * <p>A bell rings in the folder for reports, which other nodes may share, and in the temporary
 * folder. In each period one process of a node checks the first and forwards what it finds; the
 * others check the second.
 *
 * <p>A process that is woken looks for the {@link ReportFolder} itself, so a forged bell does no
 * harm.
 */
public final class Bell {
  private static final Logger log = LoggerFactory.getLogger(Bell.class);
  private static final String PREFIX = "gradient-sync-bell-";
  private static final int ATTEMPTS = 3;

  private final Path shared;
  private final Path temporary;
  private final int turn;
  private final int turns;
  private final Set<String> passedOn = new HashSet<>();

  /**
   * Creates nothing before it rings.
   *
   * @param base the folder for reports
   * @param job random, and the same on all ranks
   * @param turn this process's, from 0 to ranksOnNode - 1
   * @param ranksOnNode 1 or more
   */
  Bell(Path base, long job, int turn, int ranksOnNode) {
    String name = PREFIX + Long.toHexString(job);
    shared = base.toAbsolutePath().normalize().resolve(name);
    temporary =
        Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().normalize().resolve(name);
    this.turn = turn;
    turns = Math.max(2, ranksOnNode); // a single process checks both
  }

  /** Wakes the processes that watch a group. */
  void ring(long group) {
    ring(shared, Long.toHexString(group));
    ring(temporary, Long.toHexString(group));
  }

  private static void ring(Path place, String group) {
    try {
      for (int attempt = 0; attempt < ATTEMPTS && !tryRing(place, group); attempt++) {
        log.debug("another rank has just ended its ringing: bell={}", place);
      }
    } catch (IOException | UnsupportedOperationException | SecurityException e) {
      log.debug("nobody can be woken there: bell={}", place, e);
    }
  }

  private static boolean tryRing(Path place, String group) throws IOException {
    try {
      if (!Files.isDirectory(place, LinkOption.NOFOLLOW_LINKS)) {
        Files.createDirectory(place, OwnFiles.mode(place, "rwx------"));
      }
      Files.createFile(place.resolve(group));
      return true;
    } catch (FileAlreadyExistsException e) {
      return Files.exists(place.resolve(group));
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  /** Ends what {@link #ring} began, on this rank or on others. */
  void silence(long group) {
    silence(shared, Long.toHexString(group));
    silence(temporary, Long.toHexString(group));
  }

  private static void silence(Path place, String group) {
    try {
      Files.deleteIfExists(place.resolve(group));
      Files.deleteIfExists(place);
    } catch (IOException | SecurityException e) {
      log.debug("it rings on, perhaps for others: bell={}", place, e);
    }
  }

  /** The place where it rings for the whole job. It identifies the bell. */
  Path place() {
    return shared;
  }

  /** Ends what this process has forwarded for a group that it no longer watches. */
  synchronized void leave(long group) {
    if (passedOn.remove(Long.toHexString(group))) {
      silence(temporary, Long.toHexString(group));
    }
  }

  /**
   * Checks one of the places.
   *
   * @param period the number of the period, the same on all processes of the node
   * @return the groups for which the bell rings
   */
  synchronized Set<Long> look(long period) {
    boolean here = shared.equals(temporary) || Math.floorMod(period, turns) != turn;
    Set<String> names = namesIn(here ? temporary : shared);
    if (!here) {
      passOn(names);
    }
    Set<Long> groups = new HashSet<>();
    for (String name : names) {
      groups.add(Long.parseUnsignedLong(name, 16));
    }
    return groups;
  }

  private static Set<String> namesIn(Path place) {
    if (!Files.isDirectory(place, LinkOption.NOFOLLOW_LINKS)) {
      return Set.of();
    }
    Set<String> names = new HashSet<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(place)) {
      for (Path file : files) {
        String name = file.getFileName().toString();
        if (name.matches("[0-9a-f]{1,16}")) {
          names.add(name);
        }
      }
    } catch (IOException | RuntimeException e) {
      log.debug("it cannot be seen for whom it rings: bell={}", place, e);
    }
    return names;
  }

  /** Forwards bells to the other processes of this node for as long as they ring. */
  private void passOn(Set<String> names) {
    for (String name : names) {
      if (passedOn.add(name)) {
        ring(temporary, name);
      }
    }
    passedOn.removeIf(
        name -> {
          boolean over = !names.contains(name);
          if (over) {
            silence(temporary, name);
          }
          return over;
        });
  }
}
