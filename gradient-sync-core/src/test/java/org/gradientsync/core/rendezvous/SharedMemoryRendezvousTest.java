package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.util.Map;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A rank that abandons a call in shared memory. */
class SharedMemoryRendezvousTest {
  private static final int RANKS = 2;

  /** A rank may have gone on and failed in a later call before the other checks this one. */
  @ParameterizedTest
  @CsvSource({"5, true, true", "5, false, false", "6, true, false"})
  void abandoningALaterCallDoesNotCountForThisOne(long call, boolean inCall, boolean inThisOne) {
    LocalRanks.run(
        RANKS,
        own -> {
          try (ProcessGroup world = ProcessGroup.world(new OtherWorld());
              ProcessGroup group =
                  world.split(0, world.rank(), new Settings(Map.of()).timeouts())) {
            NodeMemory memory =
                NodeMemory.share(new GroupCommunicator(group), SharedMemoryRendezvous.BYTES);
            SharedMemoryRendezvous rendezvous =
                new SharedMemoryRendezvous(memory, group.rank(), RANKS, () -> {});
            ByteBuffer record = HostBuffers.allocate(CallRecord.BYTES);
            rendezvous.arrive(5, record);
            own.barrier();
            if (group.rank() == 1) {
              rendezvous.arrive(call, record);
              rendezvous.abandon(inCall);
            }
            own.barrier();
            if (group.rank() == 0) {
              assertEquals(inThisOne, rendezvous.gaveUp(1));
              assertEquals(true, rendezvous.abandoned(1));
              rendezvous.arrive(inCall ? call : call + 1, record);
              assertEquals(true, rendezvous.gaveUp(1));
            }
            own.barrier();
          }
        });
  }
}
