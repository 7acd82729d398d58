package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.sync.SyncBuilder;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reports of ranks on several nodes, as threads; TwoNodesIT tests processes. */
class OtherNodesTest {
  @TempDir Path folder;

  @Test
  void ranksThatShareAFolderSayWhereTheyAreStuckAndWhoHasDied() throws Exception {
    lose(4, rank -> Math.min(rank, 1), Set.of(1), 2);
    List<String> summary = summary();
    assertEquals(4, summary.size(), summary::toString);
    requireLine(summary, 0, "waits for rank 1 since ");
    requireLine(summary, 1, "is in no call since .*stuckInUserCode");
    requireLine(summary, 2, "\\(node=1\\) has died");
    requireLine(summary, 3, "waits for rank 1 since ");
  }

  /** Ranks call a barrier, except those that are stuck and one that is dead. */
  private void lose(int ranks, IntUnaryOperator nodeOf, Set<Integer> stuck, int dead) {
    CountDownLatch made = new CountDownLatch(ranks);
    CountDownLatch over = new CountDownLatch(ranks - stuck.size() - 1);
    LocalRanks.run(
        ranks,
        own -> {
          int rank = own.rank();
          try (ProcessGroup world = ProcessGroup.world(new Nodes(nodeOf, dead, made));
              GradientSync sync =
                  new SyncBuilder()
                      .ranks(world)
                      .timeout(Duration.ofMillis(1500))
                      .reports(rank == dead ? Path.of("off") : folder)
                      .create()) {
            sync.barrier();
            made.countDown();
            if (stuck.contains(rank) || rank == dead) {
              stuckInUserCode(over);
            } else {
              assertThrows(RankLostException.class, sync::barrier);
              over.countDown();
              over.await();
            }
          }
        });
  }

  private static void stuckInUserCode(CountDownLatch over) throws InterruptedException {
    over.await();
  }

  private static void requireLine(List<String> summary, int rank, String regex) {
    String line = summary.get(rank);
    assertTrue(line.matches("rank " + rank + " .*" + regex + ".*"), summary::toString);
  }

  private List<String> summary() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      Path summary = all.filter(p -> p.endsWith("summary.txt")).findFirst().orElseThrow();
      return Files.readAllLines(summary);
    }
  }

  /** Threads on several nodes. One of them dies as soon as all have begun. */
  private final class Nodes extends OtherWorld {
    private final int dead;
    private final CountDownLatch alive;

    Nodes(IntUnaryOperator nodeOf, int dead, CountDownLatch alive) {
      super(nodeOf);
      this.dead = dead;
      this.alive = alive;
    }

    @Override
    public String placeOf(int rank) {
      return "node=" + nodeOf(rank);
    }

    @Override
    public boolean isAlive(int rank) {
      return rank != dead || nodeOf(rank) != nodeOf(rank()) || alive.getCount() > 0;
    }
  }
}
