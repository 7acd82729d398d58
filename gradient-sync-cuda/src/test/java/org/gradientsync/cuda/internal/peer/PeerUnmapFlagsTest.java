package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.Random;
import java.util.function.BooleanSupplier;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the shared flags that tell which rank has unmapped which memory. */
@Timeout(60)
class PeerUnmapFlagsTest {
  private interface Body {
    void run(PeerUnmapFlags unmapFlags, int rank, Runnable barrier);
  }

  private static void run(int ranks, Body body) {
    LocalRanks.run(
        ranks,
        b -> b.device("host"),
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          try (ProcessGroup group = world.split(0, sync.rank(), world.timeouts())) {
            ByteBuffer[] memory =
                NodeMemory.share(new GroupCommunicator(group), PeerUnmapFlags.BYTES).memory();
            PeerUnmapFlags unmapFlags = new PeerUnmapFlags(memory, group.rank(), group.size());
            body.run(unmapFlags, group.rank(), sync::barrier);
            sync.barrier();
          }
        });
  }

  @Test
  void isBackWhenTheLastRankHasEndedIt() {
    run(
        3,
        (unmapFlags, rank, barrier) -> {
          for (int registration : new int[] {1, 63, 64, 65, PeerTag.MAX_REGISTRATIONS}) {
            BooleanSupplier unmapped = unmapFlags.isUnmapped(registration);
            for (int last = 0; last < 3; last++) {
              assertFalse(unmapped.getAsBoolean(), registration + " is back before rank " + last);
              barrier.run();
              if (rank == last) {
                unmapFlags.setUnmapped(registration);
              }
              barrier.run();
            }
            assertTrue(unmapped.getAsBoolean(), registration + " is not back");
            assertFalse(unmapFlags.isUnmapped(2).getAsBoolean());
            assertFalse(unmapFlags.isUnmapped(PeerTag.MAX_REGISTRATIONS - 1).getAsBoolean());
            assertFalse(unmapFlags.areAllUnmapped().getAsBoolean());
          }
        });
  }

  @Test
  void aClosedRankHasEndedEverything() {
    run(
        3,
        (unmapFlags, rank, barrier) -> {
          if (rank == 0) {
            unmapFlags.setAllUnmapped();
          } else if (rank == 1) {
            unmapFlags.setUnmapped(5);
          }
          barrier.run();
          assertFalse(unmapFlags.isUnmapped(5).getAsBoolean());
          barrier.run();
          if (rank == 2) {
            unmapFlags.setUnmapped(5);
          }
          barrier.run();
          assertTrue(unmapFlags.isUnmapped(5).getAsBoolean());
          assertFalse(unmapFlags.isUnmapped(6).getAsBoolean());
          assertFalse(unmapFlags.areAllUnmapped().getAsBoolean());
          barrier.run();
          if (rank != 0) {
            unmapFlags.setAllUnmapped();
          }
          barrier.run();
          assertTrue(unmapFlags.isUnmapped(6).getAsBoolean());
          assertTrue(unmapFlags.areAllUnmapped().getAsBoolean());
        });
  }

  @Test
  void manyInAnyOrder() {
    int many = 1000;
    run(
        2,
        (unmapFlags, rank, barrier) -> {
          BitSet[] ended = {new BitSet(), new BitSet()};
          Random random = new Random(1);
          for (int i = 0; i < 1500; i++) {
            int registration = 1 + random.nextInt(many);
            int who = random.nextInt(2);
            ended[who].set(registration);
            if (who == rank) {
              unmapFlags.setUnmapped(registration);
            }
          }
          barrier.run();
          for (int i = 1; i <= many; i++) {
            assertTrue(
                unmapFlags.isUnmapped(i).getAsBoolean() == (ended[0].get(i) && ended[1].get(i)),
                "" + i);
          }
        });
  }
}
