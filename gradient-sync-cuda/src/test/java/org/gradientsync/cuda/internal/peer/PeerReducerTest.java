package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.ArgumentMatchers.same;
import static org.mockito.ArgumentMatchers.startsWith;
import static org.mockito.Mockito.atLeast;
import static org.mockito.Mockito.atLeastOnce;
import static org.mockito.Mockito.clearInvocations;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGraph;
import org.gradientsync.cuda.CudaStream;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.peer.PeerRanks.Rank;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Reducer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.InOrder;

/** Tests the host's side. The GPUs are fakes, and the tests write the reports of the kernels. */
@Timeout(60)
class PeerReducerTest {
  private static final int FAILURE = 8;
  private static final int CALL = 16;
  private static final int WAITED = 32;
  private static final int HEADERS = 40;
  private static final int STOPPED = 3;

  private interface Body {
    void run(Rank rank, Reducer reducer, CudaBuffer buffer) throws Exception;
  }

  /** Runs ranks that have each registered a small buffer, as number 1. */
  private static void run(int ranks, Body body, String... settings) {
    run(ranks, body, false, settings);
  }

  private static void run(int ranks, Body body, boolean closes, String... settings) {
    PeerRanks.run(
        ranks,
        rank -> {
          if (ranks > PeerRanks.GPUS) {
            DriverAccess.gpu(rank.device()).kernels().reduce(); // which warms up streams
          }
          Map<String, Integer> before = rank.gpu().holds();
          String[] given =
              settings.length == 0 ? new String[] {"dev.peer.tuning", "off"} : settings;
          Reducer reducer = new PeerReducerProvider().create(rank.context(given));
          CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 100);
          reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          try {
            body.run(rank, reducer, buffer);
          } finally {
            if (!closes) {
              reducer.close();
            }
            buffer.close();
          }
          rank.everybody().barrier();
          DeferredFrees.of(rank.gpu().api, DriverAccess.gpu(rank.device()).context()).free();
          assertEquals(before, rank.gpu().holds());
        });
  }

  /** Writes a kernel's report, with the tag and call of each rank. */
  private static void report(Rank rank, long failure, long call, long[] calls, int[] tags) {
    ByteBuffer report = rank.gpu().report();
    for (int peer = 0; peer < calls.length; peer++) {
      report.putLong(HEADERS + 8 * peer, calls[peer] << PeerTag.BITS | tags[peer]);
    }
    report.putLong(CALL, call);
    report.putLong(WAITED, 2_500_000_000L);
    report.putLong(FAILURE, failure);
  }

  /** Settings with which the kernels look for NaN and infinities. */
  private static final String[] FINITE = {"dev.peer.tuning", "off", "finite", "true"};

  /** Writes as a rank's GPU does that it has found an element of the buffer in a call. */
  private static void find(Rank rank, long call, long index) {
    ByteBuffer found = rank.gpu().pageLocked(0);
    int place = (int) (call % PeerProgress.FINDINGS) * Long.BYTES;
    found.putLong(place, 1L << 43 | index + 1);
    found.putLong(PeerProgress.FINDINGS * Long.BYTES + place, call);
  }

  /** Writes as a rank's GPU does that it has completed a call. */
  private static void complete(Rank rank, long call) {
    rank.gpu().pageLocked(0).putLong(2 * PeerProgress.FINDINGS * Long.BYTES, call);
  }

  private static void assertNotFinite(Executable call) {
    NotFiniteException e = assertThrows(NotFiniteException.class, call);
    assertTrue(e.getMessage().endsWith(":\n  rank 1: FLOAT32[100], index=7"), e::getMessage);
  }

  private static int graphs(Rank rank) {
    return Collections.frequency(rank.gpu().launched, "graph");
  }

  @Test
  void aCallIsOneLaunchAndWaitsForNobody() {
    run(
        2,
        (rank, reducer, buffer) -> {
          if (rank.rank() == 0) {
            for (int i = 0; i < 5; i++) {
              reducer.run(
                  CollectiveCall.allReduce(buffer, i < 3 ? ReduceOp.AVERAGE : ReduceOp.MAX));
            }
            assertEquals(5, graphs(rank));
            assertEquals(2, rank.gpu().holds().get("executable graph"));
          } else {
            assertEquals(0, graphs(rank));
          }
        });
  }

  @Test
  void whatDoesNotMatchIsNamed() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer other = rank.device().allocate(DataType.INT64, 7);
          reducer.prepare(CollectiveCall.allReduce(other, ReduceOp.AVERAGE));
          int[] tags = {PeerTag.of(1, ReduceOp.MAX), PeerTag.of(2, ReduceOp.SUM)};
          report(rank, PeerReport.MISMATCH, 9, new long[] {9, 9}, tags);
          MismatchedCallException e =
              assertThrows(
                  MismatchedCallException.class,
                  () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.MAX)));
          assertEquals(
              "the ranks' calls do not match, rank="
                  + rank.rank()
                  + ":\n  rank 0: allReduce(FLOAT32[100], MAX), registration=1, call=9"
                  + "\n  rank 1: allReduce(INT64[7], SUM), registration=2, call=9",
              e.getMessage());
          assertEquals(0, graphs(rank));
          other.close();
        });
  }

  @Test
  void aRankThatDidNotComeIsNamedEachTime() {
    run(
        3,
        (rank, reducer, buffer) -> {
          int tag = PeerTag.of(1, ReduceOp.AVERAGE);
          report(
              rank,
              PeerReport.TIMED_OUT,
              9,
              new long[] {9, 9, 7},
              new int[] {tag, tag, PeerTag.of(1, ReduceOp.MAX)});
          RankLostException e =
              assertThrows(
                  RankLostException.class,
                  () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
          assertTrue(
              e.getMessage()
                  .startsWith(
                      "timed out: rank 2 (thread=rank-2) did not join in time, waited=2.5 s, timeout=20 s, on the"
                          + " GPU in allReduce(FLOAT32[100], "),
              e.getMessage());
          assertTrue(e.getMessage().contains(", rank=" + rank.rank()), e.getMessage());
          assertTrue(rank.group().isBroken());
          assertThrows(
              RankLostException.class,
              () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
          assertThrows(
              RankLostException.class,
              () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.MAX)));
          assertThrows(
              RankLostException.class, () -> reducer.run(CollectiveCall.broadcast(buffer, 0)));
          assertThrows(
              RankLostException.class,
              () -> reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
          assertEquals(0, graphs(rank));
        });
  }

  @Test
  void ranksThatDidNotComeOrGaveUpAreNamed() {
    run(
        4,
        (rank, reducer, buffer) -> {
          int tag = PeerTag.of(1, ReduceOp.AVERAGE);
          int[] tags = {tag, tag, tag, tag};
          tags[rank.rank() == 3 ? 2 : 3] = PeerTag.GAVE_UP;
          long[] calls = {8, 8, 8, 8};
          calls[rank.rank()] = 9;
          calls[rank.rank() == 3 ? 2 : 3] = 9;
          report(rank, STOPPED, 9, calls, tags);
          RankLostException e =
              assertThrows(
                  RankLostException.class,
                  () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
          int[] late =
              List.of(new int[] {1, 2}, new int[] {0, 2}, new int[] {0, 1}, new int[] {0, 1})
                  .get(rank.rank());
          assertTrue(
              e.getMessage()
                  .startsWith(
                      String.format(
                              "stopped: rank %d (thread=rank-%d) and rank %d (thread=rank-%d)",
                              late[0], late[0], late[1], late[1])
                          + " did not join in time, and rank "
                          + (rank.rank() == 3 ? 2 : 3)
                          + " (thread=rank-"
                          + (rank.rank() == 3 ? 2 : 3)
                          + ") gave up the call"),
              e.getMessage());
        });
  }

  @Test
  void aCallThatStoppedInTheMiddle() {
    run(
        2,
        (rank, reducer, buffer) -> {
          int tag = PeerTag.ofBroadcast(1);
          report(rank, PeerReport.TIMED_OUT, 9, new long[] {9, 9}, new int[] {tag, tag});
          RankLostException e =
              assertThrows(RankLostException.class, () -> buffer.stream().await());
          assertTrue(
              e.getMessage().startsWith("timed out: a rank stopped in the middle of the call, "),
              e.getMessage());
          assertTrue(
              e.getMessage().contains("on the GPU in broadcast(FLOAT32[100]), registration=1"),
              e.getMessage());
        });
  }

  @Test
  void whatIsNotFiniteIsThrownByTheNextCall() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer all = rank.device().allocate(DataType.FLOAT32, 200);
          List<Executable> calls =
              List.of(
                  () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)),
                  () -> reducer.run(CollectiveCall.broadcast(buffer, 1)),
                  () ->
                      reducer.run(
                          new CollectiveCall(
                              Kind.ALL_GATHER, buffer, all, null, RankGroup.NO_RANK)),
                  () -> reducer.check(true));
          for (int call = 1; call <= calls.size(); call++) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            if (rank.rank() == 1) {
              find(rank, call, 7);
            }
            complete(rank, call);
            rank.everybody().barrier();
            reducer.check(false); // a call that is not at the same place on all ranks
            rank.gpu().launched.clear();
            assertNotFinite(calls.get(call - 1));
            assertEquals(0, graphs(rank));
            buffer.stream().await(); // it has been thrown
          }
          all.close();
        },
        FINITE);
  }

  /** Otherwise a rank would make a call that another one never makes. */
  @Test
  void whatIsNotFiniteIsThrownByTheSameCallOnAllRanks() {
    run(
        2,
        (rank, reducer, buffer) -> {
          boolean ahead = rank.rank() == 0;
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          if (ahead) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          } else {
            find(rank, 1, 7);
            complete(rank, 1); // which rank 0's GPU has not
          }
          rank.everybody().barrier();
          if (!ahead) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)); // as rank 0 has made it
            assertNotFinite(() -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          }
          rank.everybody().barrier();
          if (ahead) {
            assertNotFinite(() -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          }
          assertEquals(2, graphs(rank));
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          assertEquals(3, graphs(rank));
        },
        FINITE);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void ranksThatSeeDifferentThingsThrowInTheSameCall(int ranks) {
    run(
        ranks,
        (rank, reducer, buffer) -> {
          for (int round = 1; round <= 50; round++) {
            rank.everybody().barrier();
            int calls = 0;
            try {
              while (calls < 100_000) {
                // In the end, every second rank has seen it at a time of its own.
                if (calls == (round + 3 * rank.rank()) % 8 && rank.rank() % 2 == 1) {
                  find(rank, round, 7);
                  complete(rank, round);
                }
                reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
                calls++;
              }
              throw new AssertionError("nothing is thrown, round=" + round);
            } catch (NotFiniteException e) {
              int[] counts = {calls, -calls};
              rank.everybody().allReduce(IntBuffer.wrap(counts), ReduceOp.MIN);
              assertEquals(counts[0], -counts[1]);
            }
            rank.gpu().launched.clear();
            clearInvocations(rank.gpu().api);
          }
        },
        FINITE);
  }

  @Test
  void closeThrowsWhatIsNotFiniteIfNoCallHas() {
    run(
        2,
        (rank, reducer, buffer) -> {
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          if (rank.rank() == 1) {
            find(rank, 1, 7);
          }
          complete(rank, 1);
          rank.everybody().barrier();
          assertNotFinite(reducer::close);
        },
        true,
        FINITE);
  }

  @ParameterizedTest
  @ValueSource(longs = {PeerReport.MISMATCH, PeerReport.TIMED_OUT, STOPPED})
  void closeThrowsAFailureThatNoCallHasThrown(long failure) {
    run(
        2,
        (rank, reducer, buffer) -> {
          int[] tags = {PeerTag.of(1, ReduceOp.MAX), PeerTag.of(1, ReduceOp.SUM)};
          report(rank, failure, 9, new long[] {9, 9}, tags);
          GradientSyncException e = assertThrows(GradientSyncException.class, reducer::close);
          boolean mismatch = failure == PeerReport.MISMATCH;
          assertEquals(mismatch, e instanceof MismatchedCallException, e::toString);
          assertTrue(e.getMessage().contains("FLOAT32[100]"), e::getMessage);
          rank.everybody().barrier();
        },
        true);
  }

  @ParameterizedTest
  @ValueSource(longs = {PeerReport.MISMATCH, PeerReport.TIMED_OUT, STOPPED})
  void closeDoesNotThrowAFailureAgain(long failure) {
    run(
        2,
        (rank, reducer, buffer) -> {
          int[] tags = {PeerTag.of(1, ReduceOp.MAX), PeerTag.of(1, ReduceOp.SUM)};
          report(rank, failure, 9, new long[] {9, 9}, tags);
          assertThrows(GradientSyncException.class, () -> reducer.check(false));
          reducer.check(false);
          assertThrows(RankLostException.class, () -> reducer.check(true));
          reducer.close();
          rank.everybody().barrier();
        },
        true);
  }

  @Test
  void callsThatDifferBeforeTheFirstAreFoundOnTheHost() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 5 + rank.rank());
          assertThrows(
              MismatchedCallException.class,
              () -> reducer.run(CollectiveCall.allReduce(other, ReduceOp.SUM)));
          assertThrows(
              MismatchedCallException.class,
              () -> reducer.prepare(CollectiveCall.allReduce(other, ReduceOp.AVERAGE)));
          assertThrows(
              MismatchedCallException.class, () -> reducer.run(CollectiveCall.broadcast(other, 0)));
          assertThrows(
              MismatchedCallException.class,
              () -> reducer.run(CollectiveCall.broadcast(buffer, rank.rank())));
          assertEquals(0, graphs(rank));
          reducer.run(CollectiveCall.broadcast(buffer, 1));
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          assertEquals(2, graphs(rank));
          other.close();
        });
  }

  @Test
  void whatIsCapturedIsLaunchedAsKernels() {
    run(
        2,
        (rank, reducer, buffer) -> {
          rank.gpu().launched.clear();
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          assertEquals(List.of("one_shot_FLOAT32_ADDING"), rank.gpu().launched);
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void whatMovesNothingCanBeCaptured(int ranks) {
    run(
        ranks,
        (rank, reducer, buffer) -> {
          rank.gpu().launched.clear();
          CudaBuffer empty = rank.device().allocate(DataType.FLOAT32, 0);
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          reducer.run(CollectiveCall.allReduce(ranks == 1 ? buffer : empty, ReduceOp.AVERAGE));
          assertEquals(List.of(), rank.gpu().launched);
          empty.close();
        });
  }

  @Test
  void aBroadcastThatRanBeforeIsCaptured() {
    run(
        2,
        (rank, reducer, buffer) -> {
          reducer.run(CollectiveCall.broadcast(buffer, 1));
          rank.gpu().launched.clear();
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          reducer.run(CollectiveCall.broadcast(buffer, 1));
          assertEquals(List.of("broadcast_FLOAT32"), rank.gpu().launched);
          IllegalStateException e =
              assertThrows(
                  IllegalStateException.class,
                  () -> reducer.run(CollectiveCall.broadcast(buffer, 0)));
          assertTrue(e.getMessage().endsWith("; make the same call once before"), e::getMessage);
          when(rank.gpu().api.isCapturing(any())).thenReturn(false);
        });
  }

  /** Captures a call on the buffer as a graph. */
  private static CudaGraph capture(Rank rank, Reducer reducer, CudaBuffer buffer) {
    CudaApi api = rank.gpu().api;
    CudaStream stream = buffer.stream();
    stream.beginCapture();
    when(api.isCapturing(same(DriverAccess.stream(stream).handle()))).thenReturn(true);
    reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
    when(api.nodes(any())).thenReturn(1L);
    CudaGraph graph = stream.endCapture();
    when(api.isCapturing(same(DriverAccess.stream(stream).handle()))).thenReturn(false);
    return graph;
  }

  @Test
  void replaysOfAGraphAreCallsInOneOrderWithTheOthers() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CudaStream other = rank.device().createStream();
          try (CudaGraph graph = capture(rank, reducer, buffer)) {
            assertEquals(0, rank.group().deviceCalls().count());
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            graph.launch(other);
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            assertEquals(3, rank.group().deviceCalls().count());
            InOrder order = inOrder(api);
            order.verify(api).launch(any(), same(DriverAccess.stream(buffer.stream()).handle()));
            order.verify(api).record(any(), same(DriverAccess.stream(buffer.stream()).handle()));
            order.verify(api).streamWaitsFor(same(DriverAccess.stream(other).handle()), any());
            order.verify(api).launch(any(), same(DriverAccess.stream(other).handle()));
            order.verify(api).record(any(), same(DriverAccess.stream(other).handle()));
            order
                .verify(api)
                .streamWaitsFor(same(DriverAccess.stream(buffer.stream()).handle()), any());
            order.verify(api).launch(any(), same(DriverAccess.stream(buffer.stream()).handle()));
          }
          other.close();
        });
  }

  /** Another thread may find that all calls launched so far are done. */
  @Test
  void aCallIsNotDoneBeforeItIsLaunched() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaStream stream = buffer.stream();
          try (CudaGraph graph = capture(rank, reducer, buffer)) {
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            for (Runnable call :
                List.<Runnable>of(
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)),
                    () -> graph.launch(stream))) {
              doAnswer(
                      launch -> {
                        Thread other = new Thread(stream::await);
                        other.start();
                        other.join();
                        return null;
                      })
                  .when(rank.gpu().api)
                  .launch(any(CUgraphExec.class), any());
              call.run();
              assertTrue(rank.group().deviceCalls().pending() > 0);
              stream.await();
              assertEquals(0, rank.group().deviceCalls().pending());
            }
          }
        });
  }

  @Test
  void aCallThatIsNeverLaunchedIsNotWaitedFor() {
    run(
        2,
        (rank, reducer, buffer) -> {
          doThrow(new DeviceException("cuGraphLaunch failed: X (1)", 1))
              .when(rank.gpu().api)
              .launch(any(CUgraphExec.class), any());
          assertThrows(
              RankLostException.class,
              () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          assertTrue(rank.group().deviceCalls().pending() > 0);
          buffer.stream().await();
          assertEquals(0, rank.group().deviceCalls().pending());
        });
  }

  @Test
  void whatIsCapturedPastTheLibraryIsNotCounted() {
    run(
        2,
        (rank, reducer, buffer) -> {
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          assertTrue(rank.group().deviceCalls().count() < 0);
        });
  }

  @Test
  void aGraphIsNotLaunchedOnceItsSyncIsBroken() {
    run(
        2,
        (rank, reducer, buffer) -> {
          try (CudaGraph graph = capture(rank, reducer, buffer)) {
            graph.launch(buffer.stream());
            int[] tags = {PeerTag.of(1, ReduceOp.MAX), PeerTag.of(1, ReduceOp.SUM)};
            report(rank, PeerReport.MISMATCH, 1, new long[] {1, 1}, tags);
            assertThrows(MismatchedCallException.class, () -> graph.launch(buffer.stream()));
            assertThrows(RankLostException.class, () -> graph.launch(buffer.stream()));
            assertEquals(1, graphs(rank));
          }
        });
  }

  @Test
  void aGraphThatCannotBeLaunchedBreaksTheSync() {
    run(
        2,
        (rank, reducer, buffer) -> {
          try (CudaGraph graph = capture(rank, reducer, buffer)) {
            DeviceException cause = new DeviceException("cuGraphLaunch failed: no room (2)", 2);
            doThrow(cause).doNothing().when(rank.gpu().api).launch(any(CUgraphExec.class), any());
            RankLostException e =
                assertThrows(RankLostException.class, () -> graph.launch(buffer.stream()));
            assertTrue(e.getMessage().contains("cuGraphLaunch failed: no room"), e::getMessage);
            assertThrows(RankLostException.class, () -> graph.launch(buffer.stream()));
            assertThrows(
                RankLostException.class,
                () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          }
        });
  }

  @Test
  void aGraphIsNotLaunchedOnceItsBufferIsClosed() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer brief = rank.device().allocate(DataType.FLOAT32, 5);
          reducer.prepare(CollectiveCall.allReduce(brief, ReduceOp.AVERAGE));
          try (CudaGraph graph = capture(rank, reducer, brief)) {
            CudaStream stream = brief.stream();
            brief.close();
            IllegalStateException e =
                assertThrows(IllegalStateException.class, () -> graph.launch(stream));
            assertTrue(e.getMessage().startsWith("buffer is closed: "), e::getMessage);
            assertEquals(0, graphs(rank));
          }
        });
  }

  @Test
  void aCallOnAnotherStreamComesAfterTheOneBefore() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CudaStream stream = rank.device().createStream();
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 5, stream);
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          reducer.run(CollectiveCall.allReduce(other, ReduceOp.SUM));
          InOrder order = inOrder(api);
          order
              .verify(api)
              .record(any(), same(DriverAccess.stream(rank.device().stream()).handle()));
          order.verify(api).streamWaitsFor(same(DriverAccess.stream(stream).handle()), any());
          order.verify(api).launch(any(), same(DriverAccess.stream(stream).handle()));
          other.close();
          stream.close();
          reducer.run(
              CollectiveCall.allReduce(buffer, ReduceOp.SUM)); // must not use the closed stream
        });
  }

  /** CUDA refuses these calls while the thread captures any stream. */
  @Test
  void aFirstCallMakesWhatItNeedsWhileAnotherStreamIsCaptured() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          when(api.captureMode(CudaApi.ANY_CALL)).thenReturn(1);
          for (boolean reduces : new boolean[] {true, false}) {
            CudaBuffer large = rank.device().allocate(DataType.FLOAT32, 5_000_000);
            clearInvocations(api);
            if (reduces) {
              reducer.run(CollectiveCall.allReduce(large, ReduceOp.SUM));
            } else {
              reducer.run(CollectiveCall.broadcast(large, 1));
            }
            InOrder order = inOrder(api);
            order.verify(api).captureMode(CudaApi.ANY_CALL);
            order.verify(api).exportMemory(large.address());
            order.verify(api, atLeastOnce()).beginCapture(any()); // for a plan
            order.verify(api).captureMode(1);
            order.verify(api).launch(any(), same(DriverAccess.stream(large.stream()).handle()));
            large.close();
          }
        });
  }

  /** Large buffers on two streams, as gradient buckets use them. */
  private static final class Buckets implements AutoCloseable {
    final CudaStream even;
    final CudaStream odd;
    final CudaBuffer a;
    final CudaBuffer b;
    private final Reducer reducer;

    Buckets(Rank rank, Reducer reducer) {
      this.reducer = reducer;
      CudaDevice device = rank.device();
      even = device.createStream(true);
      odd = device.createStream(true);
      a = device.allocate(DataType.FLOAT32, 5_000_000, even);
      b = device.allocate(DataType.FLOAT32, 5_000_000, odd);
      reducer.prepare(CollectiveCall.allReduce(a, ReduceOp.AVERAGE));
      reducer.prepare(CollectiveCall.allReduce(b, ReduceOp.AVERAGE));
      clearInvocations(rank.gpu().api);
    }

    void averageBoth() {
      reducer.run(CollectiveCall.allReduce(a, ReduceOp.AVERAGE));
      reducer.run(CollectiveCall.allReduce(b, ReduceOp.AVERAGE));
    }

    @Override
    public void close() {
      a.close();
      b.close();
      even.close();
      odd.close();
    }
  }

  /** The order also holds for streams that alternate, as gradient buckets use them. */
  @Test
  void overlappedCallsComeAfterTheOneBefore() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CudaStream last = rank.device().createStream(false);
          CudaBuffer c = rank.device().allocate(DataType.FLOAT32, 5_000_000, last);
          reducer.prepare(CollectiveCall.allReduce(c, ReduceOp.AVERAGE));
          try (Buckets buckets = new Buckets(rank, reducer)) {
            buckets.averageBoth();
            reducer.run(CollectiveCall.allReduce(buckets.a, ReduceOp.AVERAGE));
            reducer.run(CollectiveCall.allReduce(c, ReduceOp.AVERAGE));
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
            CUstream even = DriverAccess.stream(buckets.even).handle();
            CUstream odd = DriverAccess.stream(buckets.odd).handle();
            InOrder order = inOrder(api);
            order.verify(api).launch(any(), same(even));
            verifyAfterTheEnd(order, api, even, odd);
            verifyAfterTheEnd(order, api, odd, even);
            verifyAfterTheEnd(order, api, even, DriverAccess.stream(last).handle());
            verifyAfterTheEnd(
                order,
                api,
                DriverAccess.stream(last).handle(),
                DriverAccess.stream(buffer.stream()).handle());
            verify(api, times(4)).record(any(), any());
          }
          c.close();
          last.close();
        });
  }

  /** Verifies that a call on another stream waits for an event behind the previous call. */
  private static void verifyAfterTheEnd(InOrder order, CudaApi api, CUstream before, CUstream now) {
    order.verify(api).record(any(), same(before));
    order.verify(api).streamWaitsFor(same(now), any());
    order.verify(api).launch(any(), same(now));
  }

  @Test
  void closedStreamsAreNotWaitedForAfterAFailure() {
    run(
        2,
        (rank, reducer, buffer) -> {
          try (Buckets buckets = new Buckets(rank, reducer)) {
            buckets.averageBoth();
            reducer.run(CollectiveCall.allReduce(buckets.a, ReduceOp.AVERAGE));
            buckets.even.close(); // the stream of the last call
            buckets.odd.close();
            fail(rank, () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            reducer.close();
          }
        },
        true);
  }

  /** Reports a time-out from the GPU, which a call has to throw. */
  private static void fail(Rank rank, Executable call) {
    int tag = PeerTag.of(1, ReduceOp.AVERAGE);
    report(rank, PeerReport.TIMED_OUT, 1, new long[] {1, 1}, new int[] {tag, tag});
    assertThrows(RankLostException.class, call);
  }

  @Test
  void aClosedStreamsCallsStillComeFirst() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CudaStream stream = rank.device().createStream();
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 5, stream);
          reducer.run(CollectiveCall.allReduce(other, ReduceOp.SUM));
          CUstream handle = DriverAccess.stream(stream).handle();
          stream.close();
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          InOrder order = inOrder(api);
          order.verify(api).launch(any(), same(handle));
          order.verify(api).record(any(), same(handle));
          order.verify(api).destroyStream(same(handle));
          order
              .verify(api)
              .streamWaitsFor(same(DriverAccess.stream(rank.device().stream()).handle()), any());
          order
              .verify(api)
              .launch(any(), same(DriverAccess.stream(rank.device().stream()).handle()));
          other.close(); // its stream is already closed
        });
  }

  /** Another thread may close the stream of the last call while this one queries it. */
  @Test
  void aStreamIsNotDestroyedWhileItIsAsked() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CudaStream stream = rank.device().createStream();
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 5, stream);
          reducer.run(CollectiveCall.allReduce(other, ReduceOp.SUM));
          CUstream handle = DriverAccess.stream(stream).handle();
          Thread closer = new Thread(stream::close);
          AtomicReference<Boolean> destroyed = new AtomicReference<>();
          when(api.isDone(same(handle)))
              .then(
                  asked -> {
                    closer.start();
                    while (closer.isAlive() && closer.getState() != Thread.State.BLOCKED) {
                      Thread.onSpinWait();
                    }
                    destroyed.set(!closer.isAlive());
                    return true;
                  });
          rank.device().stream().await(); // finds that all calls are done
          closer.join();
          assertEquals(false, destroyed.get());
          verify(api).destroyStream(same(handle));
          other.close();
        });
  }

  @Test
  void closingABufferLooksAroundWhileItsCallsAreNotDone() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          CUstream handle = DriverAccess.stream(rank.device().stream()).handle();
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 5);
          reducer.prepare(CollectiveCall.allReduce(other, ReduceOp.AVERAGE));
          reducer.run(CollectiveCall.allReduce(other, ReduceOp.SUM));
          rank.everybody().barrier();
          if (rank.rank() == 0) {
            AtomicInteger asked = new AtomicInteger(); // queries since the group broke
            when(api.isDone(same(handle)))
                .then(i -> rank.group().isBroken() && asked.incrementAndGet() > 5);
            clearInvocations(api);
            Thread.currentThread().interrupt();
            RankLostException e = assertThrows(RankLostException.class, other::close);
            assertTrue(e.getMessage().contains("interrupted while waiting"), e.getMessage());
            assertTrue(Thread.interrupted());
            InOrder order = inOrder(api);
            order.verify(api, atLeast(6)).isDone(same(handle)); // releases only after that
            order.verify(api, atLeastOnce()).destroyGraph(any(CUgraphExec.class));
            e =
                assertThrows(
                    RankLostException.class,
                    () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
            assertTrue(e.getMessage().contains("interrupted while waiting"), e.getMessage());
          } else {
            other.close();
          }
        });
  }

  @Test
  void whatWentWrongIsToldOnceAndThenEachCallThrows() {
    run(
        2,
        (rank, reducer, buffer) -> {
          int[] tags = {PeerTag.of(1, ReduceOp.MAX), PeerTag.of(1, ReduceOp.SUM)};
          report(rank, PeerReport.MISMATCH, 9, new long[] {9, 9}, tags);
          assertThrows(MismatchedCallException.class, () -> buffer.stream().await());
          buffer.stream().await(); // the data can still be read
          assertThrows(
              RankLostException.class,
              () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          assertThrows(
              RankLostException.class, () -> reducer.run(CollectiveCall.broadcast(buffer, 0)));
          assertThrows(
              RankLostException.class,
              () -> reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
          assertEquals(0, graphs(rank));
        });
  }

  @Test
  void aFirstCallCannotBeCaptured() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer fresh = rank.device().allocate(DataType.FLOAT32, 5);
          when(rank.gpu().api.isCapturing(any())).thenReturn(true);
          IllegalStateException e =
              assertThrows(
                  IllegalStateException.class,
                  () -> reducer.run(CollectiveCall.allReduce(fresh, ReduceOp.SUM)));
          assertTrue(e.getMessage().contains("register the buffer before"), e.getMessage());
          assertThrows(
              IllegalStateException.class, () -> reducer.run(CollectiveCall.broadcast(buffer, 0)));
          assertThrows(
              IllegalStateException.class,
              () -> reducer.prepare(CollectiveCall.allReduce(fresh, ReduceOp.AVERAGE)));
          fresh.close();
        });
  }

  @Test
  void closingNotifiesTheOthersKernels() {
    run(
        2,
        (rank, reducer, buffer) -> {
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          rank.gpu().launched.clear();
          reducer.close();
          assertEquals(List.of("depart"), rank.gpu().launched);
          rank.everybody().barrier();
        },
        true);
  }

  @Test
  void aLargeBufferIsLentUntilAllHaveGivenItUp() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer large = rank.device().allocate(DataType.FLOAT64, 5_000_000);
          reducer.run(CollectiveCall.allReduce(large, ReduceOp.AVERAGE));
          assertTrue(rank.gpu().launched.contains("stream_FLOAT64_ADDING"));
          long address = large.address();
          if (rank.rank() == 0) {
            large.close();
            verify(rank.gpu().api, never()).free(address);
          }
          rank.everybody().barrier();
          if (rank.rank() == 1) {
            large.close();
            verify(rank.gpu().api).free(address);
          }
          rank.everybody().barrier();
          rank.device().allocate(DataType.INT32, 1).close();
          verify(rank.gpu().api).free(address);
        });
  }

  /**
   * Returns the kernels captured for sums and averages, each once, and "graph" if one was launched.
   */
  private static List<String> adding(Rank rank) {
    return rank.gpu().launched.stream().filter(n -> !n.endsWith("_OTHER")).distinct().toList();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void buffersOfWholeVectorsGoUnrolled(int ranks) {
    int count = 1 << 18; // 1 MiB, more than one_shot takes
    int most = 1 << 21; // the most that goes in lines
    run(
        ranks,
        (rank, reducer, buffer) -> {
          CudaBuffer all = rank.device().allocate(DataType.FLOAT32, most);
          Map<CudaBuffer, String> algorithms = new LinkedHashMap<>();
          algorithms.put((CudaBuffer) all.slice(0, count), "two_shot_unrolled");
          algorithms.put((CudaBuffer) all.slice(4, count), "two_shot_unrolled");
          algorithms.put((CudaBuffer) all.slice(1, count), "two_shot");
          algorithms.put((CudaBuffer) all.slice(0, count + 1), "two_shot");
          algorithms.put((CudaBuffer) all.slice(0, most), "two_shot_unrolled");
          algorithms.put((CudaBuffer) all.slice(0, 4), "one_shot");
          algorithms.forEach(
              (slice, algorithm) -> {
                rank.gpu().launched.clear();
                reducer.run(CollectiveCall.allReduce(slice, ReduceOp.AVERAGE));
                assertEquals(
                    List.of(algorithm + "_FLOAT32_ADDING", "graph"), adding(rank), "" + slice);
                assertEquals(1, graphs(rank));
              });
          rank.gpu().launched.clear();
          boolean odd = rank.rank() == 1; // each rank chooses for itself
          reducer.run(
              CollectiveCall.allReduce(all.slice(odd ? 1 : 0, count - 4), ReduceOp.AVERAGE));
          String algorithm = odd ? "two_shot" : "two_shot_unrolled";
          assertEquals(List.of(algorithm + "_FLOAT32_ADDING", "graph"), adding(rank));
          all.close();
        });
  }

  /** Uncommon cases: other operations, integers, and FLOAT64 checked for NaN. */
  @Test
  void allElseTakesOneAlgorithm() {
    int count = 2_000_000;
    run(
        2,
        (rank, reducer, buffer) -> {
          try (Reducer checkFinite =
              new PeerReducerProvider()
                  .create(rank.context("dev.peer.tuning", "off", "finite", "true"))) {
            for (DataType type : DataType.values()) {
              ReduceOp op = type.isFloatingPoint() ? ReduceOp.MIN : ReduceOp.SUM;
              String family = type.isFloatingPoint() ? "_OTHER" : "_ADDING";
              for (int elements : new int[] {4, count}) {
                CudaBuffer all = rank.device().allocate(type, elements);
                rank.gpu().launched.clear();
                reducer.run(CollectiveCall.allReduce(all, op));
                int pieces = elements == 4 ? 1 : (count * type.sizeInBytes() + (8 << 20) - 1) >> 23;
                String kernel = "two_shot_" + type + family;
                assertEquals(pieces, Collections.frequency(rank.gpu().launched, kernel), kernel);
                all.close();
              }
            }
            CudaBuffer doubles = rank.device().allocate(DataType.FLOAT64, count);
            rank.gpu().launched.clear();
            checkFinite.run(CollectiveCall.allReduce(doubles, ReduceOp.AVERAGE));
            assertEquals(List.of("two_shot_FLOAT64_ADDING", "graph"), adding(rank));
            rank.gpu().launched.clear();
            reducer.run(CollectiveCall.allReduce(doubles, ReduceOp.AVERAGE));
            assertEquals(List.of("stream_FLOAT64_ADDING", "graph"), adding(rank));
            doubles.close();
          }
        });
  }

  /** Such kernels need a whole SM for each block, and the other sync may leave none empty. */
  @Test
  void theSecondSyncOfAGpuLaunchesNoKernelsThatTakeWholeSms() {
    for (int ranks : new int[] {2, 4}) { // of four ranks, two share each GPU
      run(
          ranks,
          (rank, reducer, buffer) -> {
            CudaBuffer large = rank.device().allocate(DataType.FLOAT32, 5_000_000); // 20 MB
            try (Reducer second =
                    new PeerReducerProvider().create(rank.context("dev.peer.tuning", "off"));
                CudaStream stream = rank.device().createStream(true)) {
              CudaBuffer overlapped = rank.device().on(stream, large);
              rank.gpu().launched.clear();
              reducer.run(CollectiveCall.allReduce(overlapped, ReduceOp.AVERAGE));
              assertEquals(List.of("stream_few_ctas_FLOAT32_ADDING", "graph"), adding(rank));
              rank.gpu().launched.clear();
              second.run(CollectiveCall.allReduce(overlapped, ReduceOp.AVERAGE));
              assertEquals(List.of("stream_FLOAT32_ADDING", "graph"), adding(rank));
            }
            large.close();
          });
    }
  }

  @Test
  void aLargeBufferThatOneRankCannotShareGoesThroughTheMailboxes() {
    run(
        2,
        (rank, reducer, buffer) -> {
          if (rank.rank() == 1) {
            doThrow(new DeviceException("cuIpcGetMemHandle failed: X (1)", 1))
                .when(rank.gpu().api)
                .exportMemory(anyLong());
          }
          rank.gpu().launched.clear();
          CudaBuffer large = rank.device().allocate(DataType.FLOAT32, 5_000_000); // 20 MB
          reducer.run(CollectiveCall.allReduce(large, ReduceOp.AVERAGE));
          assertEquals(
              3, Collections.frequency(rank.gpu().launched, "two_shot_unrolled_FLOAT32_ADDING"));
          assertFalse(rank.gpu().launched.contains("stream_FLOAT32_ADDING"));
          assertEquals(1, graphs(rank));
          long address = large.address();
          large.close();
          verify(rank.gpu().api).free(address); // at once, as nobody has mapped it
        });
  }

  @Test
  void aRankThatRegisteredAloneAgreesWithTheOthersInABroadcast() {
    run(
        2,
        (rank, reducer, buffer) -> {
          CudaBuffer other = rank.device().allocate(DataType.FLOAT32, 100);
          // rank 0 has registered its buffer, rank 1 has not
          reducer.run(CollectiveCall.broadcast(rank.rank() == 0 ? buffer : other, 1));
          reducer.run(CollectiveCall.broadcast(rank.rank() == 0 ? buffer : other, 1));
          reducer.run(CollectiveCall.broadcast(rank.rank() == 0 ? buffer : other, 0));
          assertEquals(3, graphs(rank));
          other.close();
        });
  }

  /**
   * The driver compiles at load time, so a program's start should not load everything. But ranks
   * that share a GPU must not load or instantiate anything while another rank's kernel may wait for
   * theirs.
   */
  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void kernelsAreLoadedForTheOperationsAskedFor(int ranks) {
    run(
        ranks,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          int later = ranks > PeerRanks.GPUS ? 0 : 1;
          verify(api).loadImage(eq("peer_FLOAT32.compute_90.ptx"), any());
          verify(api).function(any(), eq("stream_FLOAT32_ADDING"));
          verify(api, times(1 - later)).function(any(), eq("two_shot_FLOAT32_OTHER"));
          int planned = ReduceOp.values().length - later * (ReduceOp.values().length - 1);
          verify(api, times(planned)).instantiate(any());
          for (ReduceOp op : ReduceOp.values()) {
            reducer.run(CollectiveCall.allReduce(buffer, op));
          }
          verify(api, times(ReduceOp.values().length)).instantiate(any());
          verify(api).loadImage(eq("peer_FLOAT32.compute_90.ptx"), any());
          verify(api).function(any(), eq("two_shot_FLOAT32_OTHER"));
          int warming = ranks > PeerRanks.GPUS ? 1 : 0; // otherwise only other reducers use those
          verify(api, times(warming)).loadImage(startsWith("reduce"), any());
        });
  }

  @Test
  void ranksThatShareAGpuMeetBeforeTheFirstBroadcastIsLaunched() {
    AtomicInteger planned = new AtomicInteger();
    run(
        4,
        (rank, reducer, buffer) -> {
          CudaApi api = rank.gpu().api;
          doAnswer(
                  capture -> {
                    Thread.sleep(20L * rank.rank());
                    return planned.incrementAndGet();
                  })
              .when(api)
              .beginCapture(any());
          doAnswer(
                  launch -> {
                    assertEquals(4, planned.get());
                    return null;
                  })
              .when(api)
              .launch(any(CUgraphExec.class), any());
          reducer.run(CollectiveCall.broadcast(buffer, 1));
          verify(api).launch(any(CUgraphExec.class), any());
        });
  }

  @Test
  void aRankThatCameAndLeftIsAwaited() {
    run(
        2,
        (rank, reducer, buffer) -> {
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
          rank.everybody().barrier();
          if (rank.rank() == 0) {
            rank.group().close();
          } else {
            CUstream handle = DriverAccess.stream(rank.device().stream()).handle();
            long end = System.nanoTime() + 500_000_000; // long enough for several checks
            when(rank.gpu().api.isDone(same(handle))).then(i -> System.nanoTime() - end > 0);
            rank.device().stream().await();
            assertFalse(rank.group().whyLeft(0).isEmpty());
            assertFalse(rank.group().isBroken());
          }
        });
  }

  /** A process that ends outside a call leaves no message on the other ranks' GPUs. */
  @Test
  void aRankThatHasLeftIsNotWaitedForOnTheGpu() {
    run(
        2,
        (rank, reducer, buffer) -> {
          if (rank.rank() == 0) {
            rank.group().close();
          } else {
            CUstream handle = DriverAccess.stream(rank.device().stream()).handle();
            reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
            when(rank.gpu().api.isDone(same(handle))).thenReturn(false);
            RankLostException e =
                assertThrows(RankLostException.class, () -> rank.device().stream().await());
            assertTrue(
                e.getMessage()
                    .contains("rank 0 (thread=rank-0) has left: it closed its side or ended"),
                e.getMessage());
            when(rank.gpu().api.isDone(same(handle))).thenReturn(true);
          }
        });
  }

  @Test
  void nothingGoesOnAfterARankHasLeft() {
    run(
        2,
        (rank, reducer, buffer) -> {
          if (rank.rank() == 0) {
            rank.group().close();
          } else {
            assertThrows(
                GradientSyncException.class,
                () -> reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE)));
            assertThrows(
                GradientSyncException.class,
                () -> reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM)));
          }
        });
  }
}
