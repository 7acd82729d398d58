package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.ServiceLoader;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.cuda.internal.nccl.NcclRanks.Rank;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests when {@code nccl} is available, and how the ranks get a communicator. */
@Timeout(60)
class NcclReducerProviderTest {
  private static String reason(Rank rank, Map<String, String> settings, boolean found) {
    NcclReducerProvider provider =
        new NcclReducerProvider(
            s -> {
              if (!found) {
                throw new UnavailableException("there is no NCCL");
              }
              return rank.nccl();
            });
    return provider
        .availability(
            new SyncContext(
                rank.group(),
                new GroupCommunicator(rank.group()),
                rank.device(),
                new Settings(settings),
                new OwnParts()))
        .reason();
  }

  @Test
  void isFoundByItsName() {
    assertTrue(
        ServiceLoader.load(ReducerProvider.class).stream()
            .anyMatch(p -> p.type() == NcclReducerProvider.class && p.get().name().equals("nccl")));
  }

  @Test
  void isOnlyForThoseWhoAskForIt() {
    NcclRanks.run(
        1,
        rank -> {
          assertEquals("", reason(rank, Map.of("reducer", "NCCL"), true));
          assertEquals("", reason(rank, Map.of("order", "any"), true));
          assertEquals("there is no NCCL", reason(rank, Map.of("reducer", "nccl"), false));
          String byName =
              "its order of additions depends on the topology; allow that with order=any, or choose"
                  + " reducer=nccl";
          assertEquals(byName, reason(rank, Map.of(), false));
          assertEquals(byName, reason(rank, Map.of("reducer", "peer"), true));
        });
  }

  @Test
  void gradientsInHostMemoryAreNotForIt() {
    NcclRanks.run(
        1,
        rank -> {
          try (HostDevice host = new HostDevice()) {
            assertEquals(
                "the gradients are not in GPU memory: device=host",
                new NcclReducerProvider()
                    .availability(
                        new SyncContext(
                            rank.group(),
                            new GroupCommunicator(rank.group()),
                            host,
                            new Settings(Map.of("reducer", "nccl")),
                            new OwnParts()))
                    .reason());
          }
        });
  }

  @Test
  void allRanksUseTheIdOfTheFirst() {
    NcclRanks.run(
        3,
        rank -> {
          rank.create().close();
          assertEquals(rank.rank() == 0, rank.nccl().calls.contains("uniqueId()"));
          assertTrue(rank.nccl().calls.contains("init(3 ranks, id 7, rank " + rank.rank() + ")"));
        });
  }

  @Test
  void noRankGetsItIfOneDoesNot() {
    NcclRanks.run(
        2,
        rank -> {
          if (rank.rank() == 1) {
            rank.nccl().failing = "init";
            rank.nccl().code = 1;
          }
          assertEquals(
              "ncclCommInitRank failed: ncclUnhandledCudaError (1), log=socket closed (rank 1)",
              assertThrows(UnavailableException.class, rank::create).getMessage());
          while (rank.rank() == 0 && !rank.nccl().calls.contains("abort(100)")) {
            Thread.sleep(5);
          }
        });
  }

  @Test
  void noIdIsToldToAll() {
    NcclRanks.run(
        2,
        rank -> {
          rank.nccl().failing = "uniqueId";
          rank.nccl().code = 3;
          assertEquals(
              "ncclGetUniqueId failed: ncclInternalError (3), log=socket closed (rank 0)",
              assertThrows(UnavailableException.class, rank::create).getMessage());
        });
  }

  @Test
  void aStartThatHangsTimesOut() {
    NcclRanks.run(
        2,
        "2",
        rank -> {
          rank.nccl().hangs = rank.rank() == 1;
          String text = assertThrows(UnavailableException.class, rank::create).getMessage();
          assertTrue(
              text.startsWith(
                  "ncclCommInitRank has not connected the ranks: rank=1, ranks=2, waited="),
              text);
          rank.nccl().release();
          while (!rank.nccl().calls.contains("abort(" + (100 + rank.rank()) + ")")) {
            Thread.sleep(5);
          }
        });
  }

  @Test
  void versionsMustBeTheSame() {
    NcclRanks.run(
        3,
        rank -> {
          rank.nccl().version = rank.rank() == 2 ? 21903 : 22105;
          assertEquals(
              "the ranks have different versions of NCCL: 2.21.5 on rank 0, 2.19.3 on rank 2",
              assertThrows(UnavailableException.class, rank::create).getMessage());
          assertFalse(rank.nccl().calls.toString().contains("init"));
        });
  }

  @Test
  void theSettingIsKnown() {
    assertTrue(new NcclReducerProvider().settings().contains("nccl.library"));
  }
}
