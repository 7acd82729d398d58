package org.gradientsync.collective;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** Memory that all ranks of a node have mapped. */
class NodeMemoryTest {
  private static final int KEPT = 4096;
  private static final int BYTES = KEPT + (8 << 20);

  @Test
  void whatIsGivenBackIsFreeAtOnceAndTheRestStays() {
    LocalRanks.run(
        2,
        sync -> {
          Group world = LocalRanks.current().orElseThrow();
          try (Group group = world.split(0, sync.rank(), Duration.ofSeconds(20))) {
            NodeMemory memory = NodeMemory.shareForATime(group, BYTES);
            memory.of(sync.rank()).putLong(0, 42 + sync.rank());
            sync.barrier();
            for (int i = 0; i < BYTES; i += KEPT) {
              assertEquals(i == 0 ? 43 - sync.rank() : 0, memory.of(1 - sync.rank()).getLong(i));
            }
            sync.barrier();
            memory.giveBackFrom(KEPT);
            memory.giveBackFrom(KEPT);
            sync.barrier();
            assertEquals(43 - sync.rank(), memory.of(1 - sync.rank()).getLong(0));
            assertEquals(0, residentBytes(), "still there, though it is mapped");
            sync.barrier();
          }
        });
  }

  /** Of mappings of deleted files of this size. */
  private static long residentBytes() throws IOException {
    long bytes = 0;
    boolean within = false;
    List<String> lines = Files.readAllLines(Path.of("/proc/self/smaps"));
    for (String line : lines) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        within = line.contains("/dev/shm/gradient-sync-") && line.contains("(deleted)");
      } else if (within && line.startsWith("Rss:")) {
        long kibibytes = Long.parseLong(line.replaceAll("\\D", ""));
        bytes += kibibytes > KEPT >> 10 ? kibibytes << 10 : 0;
      }
    }
    return bytes;
  }
}
