package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.sync.SyncBuilder;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reports of ranks on nodes that share no folder, as threads; TwoNodesIT tests processes. */
class OtherNodesTest {
  @TempDir Path folder;
  private final Queue<String> sent = new ConcurrentLinkedQueue<>();

  @Test
  void aNodeAnswersForItsStuckAndItsDeadRank() throws Exception {
    lose(4, rank -> Math.min(rank, 1), Set.of(1), 2);
    List<String> summary = summary();
    assertEquals(4, summary.size(), summary::toString);
    requireLine(summary, 0, "waits for rank 1 since ");
    requireLine(summary, 1, "is in no call since .*stuckInUserCode");
    requireLine(summary, 2, "\\(node=1\\) has died");
    requireLine(summary, 3, "waits for rank 1 since ");
    assertTrue(sent.contains("0 asks 3") || sent.contains("3 asks 0"), sent::toString);
    assertFalse(sent.contains("0 asks 1") || sent.contains("0 asks 2"), sent::toString);
  }

  @Test
  void aSingleRankNodeAnswersAndLeavesTheSummaryToTheRequester() throws Exception {
    lose(2, rank -> rank, Set.of(0), -1);
    requireLine(summary(), 0, "is in no call since .*stuckInUserCode");
    assertEquals(
        "1: the summary is left to rank 1 (node=1)",
        Files.readString(reports(0).resolve("teller.txt")).strip());
    assertFalse(Files.exists(reports(0).resolve("summary.txt")));
  }

  @Test
  void noMessagesAreSentWhenAllRanksShareAFolder() throws Exception {
    lose(3, rank -> rank, Set.of(1), -1, rank -> 0);
    requireLine(summary(), 1, "is in no call since .*stuckInUserCode");
    double seconds = secondsOfWriting();
    if (seconds < 0.4) {
      assertEquals(List.of(), List.copyOf(sent));
    } else { // the others may have seemed to see no folder
      System.out.println("left out: whether anything was sent, as writing took s=" + seconds);
    }
  }

  private double secondsOfWriting() throws IOException {
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (int rank = 0; rank < 3; rank++) {
      Path report = reports(0).resolve("rank-" + rank + ".txt");
      long written = Files.getLastModifiedTime(report).toMillis();
      first = Math.min(first, written);
      last = Math.max(last, written);
    }
    return (last - first) / 1e3;
  }

  private void lose(int ranks, IntUnaryOperator nodeOf, Set<Integer> stuck, int dead) {
    lose(ranks, nodeOf, stuck, dead, nodeOf);
  }

  /** Ranks call a barrier, except those that are stuck and one that is dead. */
  private void lose(
      int ranks, IntUnaryOperator nodeOf, Set<Integer> stuck, int dead, IntUnaryOperator folderOf) {
    CountDownLatch made = new CountDownLatch(ranks);
    CountDownLatch over = new CountDownLatch(ranks - stuck.size() - (dead < 0 ? 0 : 1));
    LocalRanks.run(
        ranks,
        own -> {
          int rank = own.rank();
          Path place = folder.resolve(rank == dead ? "off" : "" + folderOf.applyAsInt(rank));
          try (ProcessGroup world = ProcessGroup.world(new Nodes(nodeOf, dead, made));
              GradientSync sync =
                  new SyncBuilder()
                      .ranks(world)
                      .timeout(Duration.ofMillis(1500))
                      .reports(rank == dead ? Path.of("off") : place)
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

  /** The summary of any node that has one: which ranks ask depends on timing. */
  private List<String> summary() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      Path summary = all.filter(p -> p.endsWith("summary.txt")).findFirst().orElseThrow();
      return Files.readAllLines(summary);
    }
  }

  private Path reports(int node) throws IOException {
    try (Stream<Path> all = Files.list(folder.resolve("" + node))) {
      List<Path> paths = new ArrayList<>(all.toList());
      assertEquals(1, paths.size(), paths::toString);
      return paths.get(0);
    }
  }

  /** Threads on several nodes. One of them dies as soon as all have begun. */
  private final class Nodes extends OtherWorld {
    private final IntUnaryOperator nodeOf;
    private final int dead;
    private final CountDownLatch alive;

    Nodes(IntUnaryOperator nodeOf, int dead, CountDownLatch alive) {
      this.nodeOf = nodeOf;
      this.dead = dead;
      this.alive = alive;
    }

    @Override
    public int nodeOf(int rank) {
      return nodeOf.applyAsInt(rank);
    }

    @Override
    public String placeOf(int rank) {
      return "node=" + nodeOf(rank);
    }

    @Override
    public boolean isAlive(int rank) {
      return rank != dead || nodeOf(rank) != nodeOf(rank()) || alive.getCount() > 0;
    }

    @Override
    public Message sender(ByteBuffer memory, int peer, int tag) {
      if (tag % (1 << Channel.BITS) == Channel.REPORT_REQUEST) {
        sent.add(rank() + " asks " + peer);
      }
      return super.sender(memory, peer, tag);
    }
  }
}
