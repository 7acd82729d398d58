package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.nccl.NcclRanks.Rank;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests which functions of NCCL calls are made of, and how they fail. The library is a fake. */
@Timeout(60)
class NcclReducerTest {
  private static final int NONE = RankGroup.NO_RANK;

  private interface Body {
    void run(Rank rank, Reducer reducer) throws Exception;
  }

  private static void run(int ranks, Body body) {
    run(ranks, "20", body);
  }

  private static void run(int ranks, String timeout, Body body) {
    NcclRanks.run(
        ranks,
        timeout,
        rank -> {
          Reducer reducer = rank.create();
          rank.nccl().calls.clear();
          try {
            body.run(rank, reducer);
          } finally {
            reducer.close();
          }
        });
  }

  private static void awaitCall(Rank rank, String call) throws InterruptedException {
    while (!rank.nccl().calls.contains(call)) {
      Thread.sleep(5);
    }
  }

  private static CollectiveCall message(CudaBuffer buffer, int peer, boolean sends) {
    return sends ? CollectiveCall.send(buffer, peer) : CollectiveCall.receive(buffer, peer);
  }

  @ParameterizedTest
  @CsvSource({
    "FLOAT32, SUM, 7, 0",
    "FLOAT16, AVERAGE, 6, 4",
    "BFLOAT16, PROD, 9, 1",
    "FLOAT64, MAX, 8, 2",
    "INT32, MIN, 2, 3",
    "INT64, SUM, 4, 0"
  })
  void allReducesInPlace(DataType type, ReduceOp op, int typeCode, int opCode) {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(type, 100)) {
            reducer.run(CollectiveCall.allReduce(buffer, op));
            reducer.run(CollectiveCall.allReduce(buffer, op));
          }
          String call =
              "allReduce(in place, count 100, type "
                  + typeCode
                  + ", op "
                  + opCode
                  + ", comm "
                  + (100 + rank.rank())
                  + ", stream 5)";
          assertEquals(List.of(call, call), rank.nccl().calls);
        });
  }

  @Test
  void broadcastsInPlace() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 3)) {
            reducer.run(CollectiveCall.broadcast(buffer, 1));
          }
          assertEquals(
              List.of(
                  "broadcast(in place, count 3, type 7, root 1, comm "
                      + (100 + rank.rank())
                      + ", stream 5)"),
              rank.nccl().calls);
        });
  }

  @Test
  void collectivesThatNcclHasAreOneCall() {
    run(
        2,
        (rank, reducer) -> {
          String end = ", comm " + (100 + rank.rank()) + ", stream 5)";
          try (CudaBuffer whole = rank.device().allocate(DataType.FLOAT32, 8);
              CudaBuffer part = (CudaBuffer) whole.slice(4, 4)) {
            reducer.run(new CollectiveCall(Kind.ALL_GATHER, part, whole, null, NONE));
            reducer.run(
                new CollectiveCall(Kind.REDUCE_SCATTER, whole, part, ReduceOp.AVERAGE, NONE));
            CudaBuffer out = rank.rank() == 1 ? whole : null;
            reducer.run(new CollectiveCall(Kind.REDUCE, whole, out, ReduceOp.SUM, 1));
          }
          assertEquals(
              List.of(
                  "allGather(-16 behind, count 4, type 7" + end,
                  "reduceScatter(16 behind, count 4, type 7, op 4" + end,
                  "reduce("
                      + (rank.rank() == 1 ? "in place" : "no output")
                      + ", count 8, type 7, op 0, root 1"
                      + end),
              rank.nccl().calls);
        });
  }

  @ParameterizedTest
  @CsvSource({"GATHER, 0", "SCATTER, 1", "ALL_TO_ALL, -1"})
  void otherCollectivesAreGroupsOfMessages(Kind kind, int root) {
    run(
        3,
        (rank, reducer) -> {
          int own = rank.rank();
          try (CudaBuffer input = rank.device().allocate(DataType.INT64, 6);
              CudaBuffer output = rank.device().allocate(DataType.INT64, 6)) {
            CudaBuffer in = kind == Kind.GATHER ? (CudaBuffer) input.slice(0, 2) : input;
            CudaBuffer out = kind == Kind.SCATTER ? (CudaBuffer) output.slice(0, 2) : output;
            in = kind.hasInput(own, root) ? in : null;
            out = kind.hasOutput(own, root) ? out : null;
            reducer.run(new CollectiveCall(kind, in, out, null, root));
            List<String> expected = new ArrayList<>(List.of("groupStart()"));
            String end = ", count 2, type 4, comm " + (100 + own) + ", stream 5)";
            for (int peer = 0; peer < 3; peer++) {
              boolean sends = in != null && (kind != Kind.GATHER || peer == root);
              boolean receives = out != null && (kind != Kind.SCATTER || peer == root);
              if (sends) {
                long block = kind == Kind.GATHER ? 0 : peer * 16L;
                expected.add("send(to " + peer + " from " + (input.address() + block) + end);
              }
              if (receives) {
                long block = kind == Kind.SCATTER ? 0 : peer * 16L;
                expected.add("receive(from " + peer + " to " + (output.address() + block) + end);
              }
            }
            expected.add("groupEnd()");
            assertEquals(expected, rank.nccl().calls);
          }
        });
  }

  @Test
  void theRootsBlockInPlaceIsNotMoved() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer whole = rank.device().allocate(DataType.INT32, 4)) {
            CudaBuffer in = (CudaBuffer) whole.slice(0, 2);
            reducer.run(
                new CollectiveCall(Kind.GATHER, in, rank.rank() == 0 ? whole : null, null, 0));
          }
          assertEquals(3, rank.nccl().calls.size(), rank.nccl().calls.toString());
        });
  }

  @Test
  void messagesGoAloneOrInAGroup() {
    run(
        2,
        (rank, reducer) -> {
          int peer = 1 - rank.rank();
          try (CudaBuffer a = rank.device().allocate(DataType.FLOAT32, 5);
              CudaBuffer b = rank.device().allocate(DataType.FLOAT32, 5)) {
            if (rank.rank() == 0) {
              reducer.run(CollectiveCall.send(a, 1));
            } else {
              reducer.run(CollectiveCall.receive(a, 0));
            }
            reducer.exchange(
                List.of(CollectiveCall.send(a, peer), CollectiveCall.receive(b, peer)));
            String end = ", count 5, type 7, comm " + (100 + rank.rank()) + ", stream 5)";
            assertEquals(
                List.of(
                    (rank.rank() == 0 ? "send(to 1 from " : "receive(from 0 to ")
                        + a.address()
                        + end,
                    "groupStart()",
                    "send(to " + peer + " from " + a.address() + end,
                    "receive(from " + peer + " to " + b.address() + end,
                    "groupEnd()"),
                rank.nccl().calls);
          }
        });
  }

  @Test
  void nothingIsEnqueuedForBuffersWithoutElements() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer empty = rank.device().allocate(DataType.FLOAT32, 0)) {
            reducer.run(CollectiveCall.allReduce(empty, ReduceOp.SUM));
            reducer.run(CollectiveCall.broadcast(empty, 0));
            reducer.run(new CollectiveCall(Kind.ALL_TO_ALL, empty, empty, null, NONE));
            reducer.exchange(List.of(message(empty, 1 - rank.rank(), rank.rank() == 0)));
          }
          assertEquals(List.of(), rank.nccl().calls);
        });
  }

  @Test
  void oneRankNeedsNoCommunicator() {
    NcclRanks.run(
        1,
        rank -> {
          try (Reducer reducer = rank.create();
              CudaBuffer in = rank.device().allocate(DataType.FLOAT32, 4);
              CudaBuffer out = rank.device().allocate(DataType.FLOAT32, 4)) {
            reducer.run(CollectiveCall.allReduce(in, ReduceOp.AVERAGE));
            reducer.run(CollectiveCall.broadcast(in, 0));
            reducer.run(new CollectiveCall(Kind.ALL_GATHER, in, out, null, NONE));
            verify(rank.gpu().api).copy(any(), any(), eq(16L), any());
          }
          assertEquals(List.of(), rank.nccl().calls);
        });
  }

  @Test
  void differentCallsThrowBeforeNcclSeesThem() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5 + rank.rank())) {
            assertThrows(
                MismatchedCallException.class,
                () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertEquals(List.of(), rank.nccl().calls);
            assertThrows(
                MismatchedCallException.class,
                () ->
                    reducer.exchange(List.of(message(buffer, 1 - rank.rank(), rank.rank() == 0))));
          }
          assertEquals(List.of(), rank.nccl().calls);
          assertTrue(reducer.blocksHost());
        });
  }

  @Test
  void aStreamThatIsCapturedIsRefused() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            when(rank.gpu().api.isCapturing(any())).thenReturn(true);
            IllegalStateException e =
                assertThrows(
                    IllegalStateException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(e.getMessage().startsWith("the stream is being captured: "), e.toString());
            assertTrue(e.getMessage().endsWith("call outside of graphs"), e.toString());
            when(rank.gpu().api.isCapturing(any())).thenReturn(false);
            rank.everybody().barrier();
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          }
        });
  }

  @Test
  void aCallThatFailsBreaksTheSyncAndAbortsNccl() throws InterruptedException {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            rank.nccl().failing = "allReduce";
            rank.nccl().code = 2;
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(
                e.getMessage()
                    .contains("ncclAllReduce failed: ncclSystemError (2), log=socket closed"),
                e.getMessage());
            assertEquals(2, ((DeviceException) e.getCause()).code());
            assertThrows(
                RankLostException.class,
                () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            awaitCall(rank, "abort(" + (100 + rank.rank()) + ")");
          }
        });
  }

  @Test
  void aGroupEndsAlsoIfAMessageFails() {
    run(
        2,
        (rank, reducer) -> {
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 4)) {
            rank.nccl().failing = "send";
            rank.nccl().code = 5;
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () ->
                        reducer.run(
                            new CollectiveCall(
                                Kind.ALL_TO_ALL,
                                buffer.slice(0, 2),
                                buffer.slice(2, 2),
                                null,
                                NONE)));
            assertTrue(
                e.getMessage().contains("ncclSend failed: ncclInvalidUsage (5)"), e.getMessage());
            assertTrue(rank.nccl().calls.contains("groupEnd()"));
          }
        });
  }

  @Test
  void aFailureOnTheDeviceThrowsWhereTheHostWaits() {
    run(
        2,
        (rank, reducer) -> {
          rank.hang();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            rank.nccl().failure = 6;
            awaitCall(rank, "abort(" + (100 + rank.rank()) + ")");
            RankLostException e =
                assertThrows(RankLostException.class, () -> rank.device().stream().await());
            assertTrue(
                e.getMessage()
                    .startsWith(
                        "nccl has stopped: ncclRemoteError (6), log=socket closed,"
                            + " call=allReduce(FLOAT32[5], SUM), rank="),
                e.getMessage());
            rank.device().stream().await(); // told once
            assertThrows(
                RankLostException.class,
                () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          }
        });
  }

  @Test
  void aCallThatDoesNotEndTimesOut() {
    run(
        2,
        "1",
        (rank, reducer) -> {
          rank.hang();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            reducer.run(CollectiveCall.broadcast(buffer, 1));
            awaitCall(rank, "abort(" + (100 + rank.rank()) + ")");
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(
                e.getMessage()
                    .startsWith(
                        "timed out: broadcast(FLOAT32[5], root=1) has not ended on the GPU,"
                            + " waited=1 s, rank="),
                e.getMessage());
          }
          assertFalse(rank.nccl().calls.toString().contains("destroy"));
        });
  }

  @Test
  void theRankThatGaveUpIsNamed() {
    run(
        2,
        (rank, reducer) -> {
          rank.hang();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            if (rank.rank() == 0) {
              synchronized (rank.group()) {
                rank.group().broken("the test says so", null);
              }
              return;
            }
            awaitCall(rank, "abort(101)");
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(e.getMessage().startsWith("nccl has stopped: rank 0 ("), e.getMessage());
            assertTrue(e.getMessage().contains("the test says so"), e.getMessage());
          }
        });
  }

  @Test
  void manyCallsMayBeUnderWay() {
    run(
        2,
        (rank, reducer) -> {
          AtomicInteger ends = rank.hang();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            for (int i = 0; i < NcclProgress.CALLS; i++) {
              reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            }
            String state = reducer.state().toString();
            assertTrue(state.contains("unfinished=" + NcclProgress.CALLS), state);
            assertTrue(state.contains("version=2.21.5, library=/opt/libnccl.so.2"), state);
            ends.set(1);
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          }
        });
  }

  @Test
  void closeThrowsAFailureThatNoCallHasThrown() {
    NcclRanks.run(
        2,
        rank -> {
          Reducer reducer = rank.create();
          rank.nccl().calls.clear();
          AtomicInteger ends = rank.hang();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            rank.nccl().failure = 6;
            awaitCall(rank, "abort(" + (100 + rank.rank()) + ")");
            ends.set(1); // as kernels do that are aborted
            RankLostException e = assertThrows(RankLostException.class, reducer::close);
            assertTrue(e.getMessage().startsWith("nccl has stopped: "), e::getMessage);
          }
        });
  }

  @Test
  void closeWaitsAndFreesTheCommunicator() throws InterruptedException {
    NcclRanks.run(
        2,
        rank -> {
          Reducer reducer = rank.create();
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 5)) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          }
          reducer.close();
          awaitCall(rank, "destroy(" + (100 + rank.rank()) + ")");
          assertFalse(rank.nccl().calls.toString().contains("abort"));
        });
  }
}
