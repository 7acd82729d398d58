package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.peer.PeerRanks.Rank;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests whether ranks can reach each other's memory, and how they map it. */
@Timeout(60)
class PeerMemoryTest {
  /** Opens memory as if each rank had its own process. */
  private static PeerMemory openAsProcess(Rank rank) {
    return PeerMemory.open(
        new GroupCommunicator(rank.group()),
        DriverAccess.gpu(rank.device()),
        true,
        1000 + rank.rank());
  }

  private static String refusal(Rank rank) {
    return assertThrows(
            UnavailableException.class,
            () ->
                PeerMemory.open(
                    new GroupCommunicator(rank.group()), DriverAccess.gpu(rank.device()), false))
        .getMessage();
  }

  private static DeviceException failure(String call) {
    return new DeviceException(call + " failed: CUDA_ERROR_X (999)", 999);
  }

  @Test
  void gpusWithoutPeerAccess() {
    PeerRanks.run(
        2,
        rank -> {
          if (rank.rank() == 1) {
            when(rank.gpu().api.canAccessPeer(1, 0)).thenReturn(false);
          }
          assertEquals("their GPUs have no peer access: ranks 1 and 0 (rank 1)", refusal(rank));
        });
  }

  @Test
  void gpusThatAreJoinedByPciExpressOnly() {
    PeerRanks.run(
        2,
        rank -> {
          when(rank.gpu().api.hasNativeLink(anyInt(), anyInt())).thenReturn(false);
          assertEquals(
              "their GPUs are not joined by NVLink: ranks 0 and 1 (rank 0)", refusal(rank));
          verify(rank.gpu().api, never()).enablePeerAccess(any());
        });
  }

  @Test
  void aGpuThatIsNotShown() {
    PeerRanks.run(
        2,
        rank -> {
          if (rank.rank() == 1) {
            when(rank.gpu().api.pciAddress(0)).thenReturn("0000:ff:00.0");
          }
          assertEquals(
              "this process is not shown the other rank's GPU (CUDA_VISIBLE_DEVICES): ranks 1 and 0"
                  + " (rank 1)",
              refusal(rank));
        });
  }

  @Test
  void peerAccessThatTheDriverRefuses() {
    PeerRanks.run(
        2,
        rank -> {
          if (rank.rank() == 0) {
            doThrow(failure("cuCtxEnablePeerAccess")).when(rank.gpu().api).enablePeerAccess(any());
          }
          assertEquals(
              "cuCtxEnablePeerAccess failed: CUDA_ERROR_X (999): ranks 0 and 1 (rank 0)",
              refusal(rank));
        });
  }

  @Test
  void processesThatShareAGpu() {
    PeerRanks.run(
        3,
        rank -> {
          UnavailableException e =
              assertThrows(UnavailableException.class, () -> openAsProcess(rank));
          assertEquals("they share a GPU: ranks 0 and 2 (rank 0)", e.getMessage());
        });
  }

  @Test
  void ranksOfOneProcessThatShareAGpuWithoutBeingAllowedTo() {
    PeerRanks.run(
        3, rank -> assertEquals("they share a GPU: ranks 0 and 2 (rank 0)", refusal(rank)));
  }

  @Test
  void ranksOfOneProcessUseTheAddressesThemselves() {
    long[] addresses = new long[3];
    PeerRanks.run(
        3, // ranks 0 and 2 use the same GPU
        rank -> {
          try (PeerMemory memory =
                  PeerMemory.open(
                      new GroupCommunicator(rank.group()), DriverAccess.gpu(rank.device()), true);
              CudaBuffer buffer = rank.device().allocate(DataType.INT32, 100)) {
            int others = rank.rank() == 1 ? 2 : 1;
            verify(rank.gpu().api, times(others)).enablePeerAccess(any());
            addresses[rank.rank()] = buffer.address() + 8;
            PeerMemory.Mapped[] mapped = memory.share(buffer.address() + 8);
            for (int peer = 0; peer < 3; peer++) {
              assertEquals(addresses[peer], mapped[peer].address());
            }
            memory.unmap(mapped);
            verify(rank.gpu().api, never()).importMemory(any());
            verify(rank.gpu().api, never()).closeImport(anyLong());
          }
        });
  }

  @Test
  void anAllocationOfAnotherProcessIsMappedOnce() {
    PeerRanks.run(
        2,
        rank -> {
          try (PeerMemory memory = openAsProcess(rank);
              CudaBuffer buffer = rank.device().allocate(DataType.INT32, 100);
              CudaBuffer another = rank.device().allocate(DataType.INT32, 100)) {
            CudaApi api = rank.gpu().api;
            int peer = 1 - rank.rank();
            verify(api, never()).enablePeerAccess(any());
            PeerMemory.Mapped[] whole = memory.share(buffer.address());
            PeerMemory.Mapped[] part = memory.share(buffer.address() + 12);
            verify(api, times(1)).importMemory(any());
            assertEquals(whole[peer].address() + 12, part[peer].address());
            assertEquals(buffer.address(), whole[rank.rank()].address());
            memory.unmap(whole);
            verify(api, never()).closeImport(anyLong());
            PeerMemory.Mapped[] other = memory.share(another.address());
            verify(api, times(2)).importMemory(any());
            memory.unmap(part);
            verify(api, times(1)).closeImport(whole[peer].address());
            memory.share(buffer.address()); // again, after it was unmapped
            verify(api, times(3)).importMemory(any());
            assertEquals(2, rank.gpu().holds().get("import"));
            assertNotNull(other);
          }
          assertNull(rank.gpu().holds().get("import"));
        });
  }

  @Test
  void memoryThatOneRankCannotExportIsMappedByNobody() {
    PeerRanks.run(
        2,
        rank -> {
          try (PeerMemory memory = openAsProcess(rank);
              CudaBuffer buffer = rank.device().allocate(DataType.INT32, 100)) {
            if (rank.rank() == 1) {
              doThrow(failure("cuIpcGetMemHandle")).when(rank.gpu().api).exportMemory(anyLong());
            }
            assertNull(memory.share(buffer.address()));
            assertNull(rank.gpu().holds().get("import"));
          }
        });
  }

  @Test
  void memoryThatOneRankCannotImportIsGivenUpByAll() {
    PeerRanks.run(
        2,
        rank -> {
          try (PeerMemory memory = openAsProcess(rank);
              CudaBuffer buffer = rank.device().allocate(DataType.INT32, 100)) {
            if (rank.rank() == 1) {
              doThrow(failure("cuIpcOpenMemHandle")).when(rank.gpu().api).importMemory(any());
            }
            assertNull(memory.share(buffer.address()));
            assertNull(rank.gpu().holds().get("import"));
            verify(rank.gpu().api, times(rank.rank() == 0 ? 1 : 0)).closeImport(anyLong());
          }
        });
  }

  private static void mailboxIsRefused(Rank rank, String reason) {
    Map<String, Integer> before = rank.gpu().holds();
    PeerMemory memory = openAsProcess(rank);
    PeerUnmapFlags unmapFlags =
        new PeerUnmapFlags(
            NodeMemory.share(new GroupCommunicator(rank.group()), PeerUnmapFlags.BYTES).memory(),
            rank.rank(),
            rank.group().size());
    UnavailableException e =
        assertThrows(
            UnavailableException.class,
            () ->
                new PeerMailbox(
                    DriverAccess.stream(rank.device().stream()),
                    memory,
                    unmapFlags,
                    new PeerLayout(2)));
    assertEquals(reason, e.getMessage());
    memory.communicator().barrier(); // by now all ranks have given up
    rank.device().allocate(DataType.INT32, 1).close();
    assertEquals(before, rank.gpu().holds());
  }

  @Test
  void aMailboxForWhichOneRankHasNoMemory() {
    PeerRanks.run(
        2,
        rank -> {
          if (rank.rank() == 1) {
            doThrow(
                    new DeviceException(
                        "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), bytes=5",
                        CudaApi.OUT_OF_MEMORY))
                .when(rank.gpu().api)
                .allocate(new PeerLayout(2).bytes());
          }
          mailboxIsRefused(
              rank,
              "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), bytes=5, free=7, total=9,"
                  + " device=fake (0000:2c:00.0) (rank 1)");
        });
  }

  @Test
  void aMailboxThatOneRankCannotMap() {
    PeerRanks.run(
        2,
        rank -> {
          if (rank.rank() == 0) {
            doThrow(failure("cuIpcOpenMemHandle")).when(rank.gpu().api).importMemory(any());
          }
          mailboxIsRefused(rank, "a rank cannot map another rank's GPU memory");
        });
  }

  @Test
  void aMailboxStaysUntilTheLastRankHasUnmappedIt() {
    PeerRanks.run(
        2,
        rank -> {
          PeerMemory memory = openAsProcess(rank);
          PeerUnmapFlags unmapFlags =
              new PeerUnmapFlags(
                  NodeMemory.share(new GroupCommunicator(rank.group()), PeerUnmapFlags.BYTES)
                      .memory(),
                  rank.rank(),
                  2);
          PeerLayout layout = new PeerLayout(2);
          PeerMailbox mailbox =
              new PeerMailbox(
                  DriverAccess.stream(rank.device().stream()), memory, unmapFlags, layout);
          assertTrue(mailbox.of(0) != mailbox.of(1));
          verify(rank.gpu().api).fillZero(eq(mailbox.of(rank.rank())), eq(layout.bytes()), any());
          if (rank.rank() == 0) {
            memory.close();
            unmapFlags.setAllUnmapped();
            mailbox.close();
            assertEquals(layout.bytes(), rank.gpu().allocatedBytes());
            memory.communicator().barrier();
            memory.communicator().barrier();
            rank.device().allocate(DataType.INT32, 1).close();
          } else {
            memory.communicator().barrier();
            memory.close();
            unmapFlags.setAllUnmapped();
            mailbox.close();
            memory.communicator().barrier();
          }
          assertEquals(0, rank.gpu().allocatedBytes());
        });
  }
}
