package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUdeviceptr;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.DeviceException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.peer.PeerRanks.Rank;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.ArgumentCaptor;

/** Tests the host's side of collectives and messages. The GPUs are fakes. */
@Timeout(60)
class PeerCollectivesTest {
  private static final int FAILURE = 8;
  private static final int CALL = 16;
  private static final int HEADERS = 40;
  private static final int NONE = RankGroup.NO_RANK;

  private interface Body {
    void run(Rank rank, Reducer reducer, CudaBuffer all, CudaBuffer part) throws Exception;
  }

  /** Runs ranks that have a buffer of a block for each rank, and one of a block. */
  private static void run(int ranks, Body body) {
    PeerRanks.run(
        ranks,
        rank -> {
          if (ranks > PeerRanks.GPUS) {
            DriverAccess.gpu(rank.device()).kernels().reduce(); // which warms up streams
          }
          Map<String, Integer> before = rank.gpu().holds();
          Reducer reducer =
              new PeerReducerProvider().create(rank.context("dev.peer.tuning", "off"));
          CudaBuffer all = rank.device().allocate(DataType.FLOAT32, 10L * ranks);
          CudaBuffer part = rank.device().allocate(DataType.FLOAT32, 10);
          rank.gpu().launched.clear();
          try {
            body.run(rank, reducer, all, part);
          } finally {
            reducer.close();
            all.close();
            part.close();
          }
          rank.everybody().barrier();
          DeferredFrees.of(rank.gpu().api, DriverAccess.gpu(rank.device()).context()).free();
          assertEquals(before, rank.gpu().holds());
        });
  }

  private static int graphs(Rank rank) {
    return Collections.frequency(rank.gpu().launched, "graph");
  }

  private static void report(Rank rank, long failure, int[] tags) {
    ByteBuffer report = rank.gpu().report();
    for (int peer = 0; peer < tags.length; peer++) {
      report.putLong(HEADERS + 8 * peer, (tags[peer] == 0 ? 0 : 9L << PeerTag.BITS) | tags[peer]);
    }
    report.putLong(CALL, 9);
    report.putLong(FAILURE, failure);
  }

  @Test
  void theFirstCallMeetsAndLaterOnesAreOneLaunch() {
    run(
        2,
        (rank, reducer, all, part) -> {
          reducer.run(new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.SUM, NONE));
          reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
          long met = rank.group().deviceCalls().met();
          if (rank.rank() == 0) {
            for (int i = 0; i < 4; i++) {
              reducer.run(new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.SUM, NONE));
              reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
            }
            assertEquals(met, rank.group().deviceCalls().met());
            assertEquals(10, rank.group().deviceCalls().count());
            assertTrue(
                rank.group().deviceCalls().current().startsWith("allGather(FLOAT32[10])"),
                rank.group().deviceCalls().current());
          }
          assertEquals(rank.rank() == 0 ? 10 : 2, graphs(rank));
        });
  }

  @Test
  void callsThatWereRegisteredDoNotMeet() {
    run(
        2,
        (rank, reducer, all, part) -> {
          for (int i = 0; i < 2; i++) { // the second time changes nothing
            reducer.prepare(
                new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.AVERAGE, NONE));
            reducer.prepare(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
          }
          assertEquals(0, graphs(rank));
          int plans = rank.gpu().holds().get("executable graph");
          long met = rank.group().deviceCalls().met();
          if (rank.rank() == 0) {
            for (int i = 0; i < 4; i++) {
              reducer.run(
                  new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.AVERAGE, NONE));
              reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
            }
            assertEquals(met, rank.group().deviceCalls().met());
            assertEquals(8, rank.group().deviceCalls().count());
          }
          assertEquals(rank.rank() == 0 ? 8 : 0, graphs(rank));
          assertEquals(plans, rank.gpu().holds().get("executable graph"));
        });
  }

  /** The block is at another offset of the named buffer on each rank. */
  @Test
  void blocksOfTheWholeAreRegistered() {
    run(
        2,
        (rank, reducer, all, part) -> {
          DeviceBuffer whole = all.named("weights");
          DeviceBuffer block = whole.slice(rank.rank() * part.count(), part.count());
          reducer.prepare(new CollectiveCall(Kind.ALL_GATHER, block, whole, null, NONE));
          assertEquals(0, graphs(rank));
        });
  }

  @Test
  void oneRankHasNothingToRegister() {
    run(
        1,
        (rank, reducer, all, part) -> {
          float[] before = new float[10];
          part.copyFrom(new float[10]);
          reducer.prepare(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
          part.copyTo(before);
          assertArrayEquals(new float[10], before);
          assertEquals(0, graphs(rank));
        });
  }

  @Test
  void callsThatDifferAreNamed() {
    run(
        2,
        (rank, reducer, all, part) -> {
          reducer.run(new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.SUM, NONE));
          reducer.run(
              new CollectiveCall(Kind.REDUCE, all, rank.rank() == 1 ? all : null, ReduceOp.MAX, 1));
          report(
              rank,
              PeerReport.MISMATCH,
              new int[] {PeerTag.ofCollective(1), PeerTag.ofCollective(2)});
          MismatchedCallException e =
              assertThrows(
                  MismatchedCallException.class,
                  () ->
                      reducer.run(
                          new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.SUM, NONE)));
          assertEquals(
              "the ranks' calls do not match, rank="
                  + rank.rank()
                  + ":\n  rank 0: reduceScatter(FLOAT32[10], SUM), registration=1, call=9"
                  + "\n  rank 1: reduce(FLOAT32[20], MAX, root=1), registration=2, call=9",
              e.getMessage());
          assertEquals(2, graphs(rank));
        });
  }

  @Test
  void firstCallsThatDifferAreFoundOnTheHost() {
    run(
        2,
        (rank, reducer, all, part) -> {
          assertThrows(
              MismatchedCallException.class,
              () -> {
                if (rank.rank() == 0) {
                  reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
                } else {
                  reducer.run(
                      new CollectiveCall(Kind.REDUCE_SCATTER, all, part, ReduceOp.SUM, NONE));
                }
              });
          assertEquals(0, graphs(rank));
          reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE));
          assertEquals(1, graphs(rank));
        });
  }

  @Test
  void theRootMayComeWithOtherBuffers() {
    run(
        2,
        (rank, reducer, all, part) -> {
          boolean isRoot = rank.rank() == 0;
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 20);
          for (int i = 0; i < 3; i++) {
            reducer.run(new CollectiveCall(Kind.GATHER, part, isRoot ? all : null, null, 0));
            reducer.run(new CollectiveCall(Kind.GATHER, part, isRoot ? other : null, null, 0));
            reducer.run(new CollectiveCall(Kind.SCATTER, isRoot ? all : null, part, null, 0));
          }
          assertEquals(9, graphs(rank));
          other.close();
        });
  }

  @Test
  void emptyBlocksAndSingleRanksEnqueueNoKernel() {
    run(
        2,
        (rank, reducer, all, part) -> {
          CudaBuffer none = rank.device().allocate(DataType.FLOAT32, 0);
          reducer.run(new CollectiveCall(Kind.ALL_TO_ALL, none, none, null, NONE));
          if (rank.rank() == 0) {
            reducer.run(CollectiveCall.send(none, 1));
          } else {
            reducer.run(CollectiveCall.receive(none, 0));
          }
          assertEquals(List.of(), rank.gpu().launched);
          none.close();
        });
    run(
        1,
        (rank, reducer, all, part) -> {
          reducer.run(new CollectiveCall(Kind.ALL_GATHER, all, part, null, NONE));
          reducer.run(new CollectiveCall(Kind.REDUCE, all, all, ReduceOp.SUM, 0));
          assertEquals(List.of(), rank.gpu().launched);
          verify(rank.gpu().api, times(1)).copy(any(), any(), anyLong(), any());
        });
  }

  @Test
  void reductionsNeedNoMapping() {
    run(
        2,
        (rank, reducer, all, part) -> {
          doThrow(new DeviceException("cuIpcGetMemHandle failed: X (1)", 1))
              .when(rank.gpu().api)
              .exportMemory(anyLong());
          long before = rank.gpu().allocatedBytes();
          for (int i = 0; i < 3; i++) {
            reducer.run(new CollectiveCall(Kind.REDUCE, all, all, ReduceOp.SUM, 1));
          }
          assertEquals(0, rank.gpu().allocatedBytes() - before);
          verify(rank.gpu().api, never()).copy(any(), any(), anyLong(), any());
          assertEquals(3, graphs(rank));
        });
  }

  @Test
  void outputsThatCannotBeMappedAreCopied() {
    run(
        2,
        (rank, reducer, all, part) -> {
          if (rank.rank() == 0) {
            doThrow(new DeviceException("cuIpcGetMemHandle failed: X (1)", 1))
                .doReturn(new byte[64])
                .when(rank.gpu().api)
                .exportMemory(anyLong());
          }
          long before = rank.gpu().allocatedBytes();
          CudaBuffer out = rank.rank() == 1 ? all : null;
          for (int i = 0; i < 3; i++) {
            reducer.run(new CollectiveCall(Kind.GATHER, part, out, null, 1));
          }
          boolean root = rank.rank() == 1;
          assertEquals(root ? 80 : 0, rank.gpu().allocatedBytes() - before);
          ArgumentCaptor<CUdeviceptr> to = ArgumentCaptor.captor();
          ArgumentCaptor<CUdeviceptr> from = ArgumentCaptor.captor();
          verify(rank.gpu().api, times(root ? 6 : 0))
              .copy(to.capture(), from.capture(), anyLong(), any());
          for (int i = 0; i < to.getAllValues().size(); i += 2) { // there before, and back
            assertEquals(to.getAllValues().get(i), from.getAllValues().get(i + 1));
            assertEquals(from.getAllValues().get(i), to.getAllValues().get(i + 1));
          }
        });
  }

  @Test
  void whatIsCapturedIsLaunchedAsAKernel() {
    run(
        2,
        (rank, reducer, all, part) -> {
          reducer.run(new CollectiveCall(Kind.ALL_TO_ALL, all, all, null, NONE));
          rank.gpu().launched.clear();
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          reducer.run(new CollectiveCall(Kind.ALL_TO_ALL, all, all, null, NONE));
          assertEquals(List.of("push_copy"), rank.gpu().launched);
          IllegalStateException e =
              assertThrows(
                  IllegalStateException.class,
                  () -> reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, all, null, NONE)));
          assertTrue(e.getMessage().endsWith("; make the same call once before"), e::getMessage);
          e =
              assertThrows(
                  IllegalStateException.class, () -> reducer.run(CollectiveCall.send(part, 1)));
          assertTrue(e.getMessage().endsWith("; send and receive outside of graphs"));
          when(rank.gpu().api.isCapturing(any())).thenReturn(false);
        });
  }

  @Test
  void aMessageIsOneKernelOnEachOfTwoRanks() {
    run(
        3,
        (rank, reducer, all, part) -> {
          for (int i = 0; i < 2; i++) {
            if (rank.rank() == 0) {
              reducer.run(CollectiveCall.send(part, 2));
            } else if (rank.rank() == 2) {
              reducer.run(CollectiveCall.receive(part, 0));
            }
          }
          assertEquals(
              List.of(
                      List.of("message_send", "message_send"),
                      List.<String>of(),
                      List.of("message_receive", "message_receive"))
                  .get(rank.rank()),
              rank.gpu().launched);
          assertEquals(0, rank.group().deviceCalls().count());
          if (rank.rank() != 1) {
            assertTrue(rank.group().deviceCalls().pending() > 0);
            part.stream().await();
          }
          assertEquals(0, rank.group().deviceCalls().pending());
          reducer.run(CollectiveCall.broadcast(part, 0));
        });
  }

  @Test
  void aMessageThatDoesNotComeIsNamed() {
    run(
        3,
        (rank, reducer, all, part) -> {
          boolean sends = rank.rank() == 0;
          int[] tags = new int[3];
          tags[rank.rank()] = PeerTag.ofMessage(sends ? 1 : 0, sends);
          report(rank, PeerReport.TIMED_OUT, tags);
          RankLostException e =
              assertThrows(
                  RankLostException.class, () -> reducer.run(CollectiveCall.broadcast(part, 0)));
          String text = e.getMessage();
          assertTrue(text.startsWith("timed out: rank " + (sends ? 1 : 0) + " (thread="), text);
          assertTrue(text.contains(") did not join in time"), text);
          assertTrue(text.contains("on the GPU in " + (sends ? "send(to=1)" : "receive(from=0)")));
          assertTrue(rank.group().isBroken());
        });
  }
}
