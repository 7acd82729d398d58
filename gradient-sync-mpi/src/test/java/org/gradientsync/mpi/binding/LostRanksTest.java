package org.gradientsync.mpi.binding;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests what becomes of an MPI's errors after a loss, without an MPI. */
class LostRanksTest {
  private static final MpiFailure FAILED = new MpiFailure("Process Failure", 75, 75, null);
  private static final MpiFailure PENDING = new MpiFailure("still active", 76, 76, null);

  private final MpiCalls mpi = mock(MpiCalls.class);
  private final MpiComm world = mock(MpiComm.class);
  private final MpiRequest request = mock(MpiRequest.class);

  @BeforeEach
  void rank1Dies() throws Exception {
    when(world.size()).thenReturn(3);
    when(world.receiver(any(), anyInt(), anyInt())).thenReturn(request);
    when(world.acknowledgeLosses()).thenReturn(BitSet.valueOf(new long[] {1 << 1}));
  }

  private MpiJob job(boolean letsOthersLive) throws MpiFailure {
    when(mpi.letsOthersLive()).thenReturn(letsOthersLive);
    when(mpi.version()).thenReturn("Open MPI v4.1.4");
    RankPlace place = RankPlace.own("node7");
    RankPlace[] places = {place, place, place};
    return new MpiJob(mpi, world, true, new int[3], places, new boolean[3]);
  }

  private static MpiMessage startedReceive(MpiJob job, int peer) {
    MpiMessage message = job.receiver(ByteBuffer.allocateDirect(1), peer, 0);
    message.start();
    return message;
  }

  @Test
  void aReceiveFromAnyRankGoesOn() throws Exception {
    when(request.test()).thenThrow(PENDING).thenReturn(false, true);
    MpiJob job = job(true);
    MpiMessage message = startedReceive(job, Transport.ANY_RANK);
    assertTrue(job.isAlive(1));
    assertFalse(message.test());
    assertFalse(job.isAlive(1));
    assertTrue(job.isAlive(2));
    assertFalse(message.test());
    assertTrue(message.test());
  }

  @Test
  void aMessageOfALostRankThrows() throws Exception {
    when(request.test()).thenThrow(FAILED);
    MpiJob job = job(true);
    MpiMessage message = startedReceive(job, 1);
    assertThrows(RankLostException.class, message::test);
    assertFalse(job.isAlive(1));
    message.start();
    assertThrows(RankLostException.class, message::test);
    message.close();
    verify(request, never()).free(); // MPI has done so
  }

  @Test
  void closingAMessageOfALostRankDoesNotThrow() throws Exception {
    when(request.test()).thenThrow(FAILED);
    MpiMessage message = startedReceive(job(true), 1);
    assertDoesNotThrow(message::close);
    verify(request, never()).free();
  }

  @Test
  void anMpiThatEndsTheJobSaysWhatToDo() throws Exception {
    when(request.test()).thenThrow(FAILED);
    MpiJob job = job(false);
    assertEquals(
        "this MPI ends the job with its first lost rank: launcher=mpi, rank=0, library=Open MPI"
            + " v4.1.4; start the job with Open MPI 5's mpirun --with-ft ulfm, and"
            + " gradientsync.mpi.binding=direct, or with gradient-sync run --launcher tcp",
        assertThrows(UnavailableException.class, () -> job.goOnWithout(List.of())).getMessage());
    MpiMessage message = startedReceive(job, 1);
    assertEquals(
        GradientSyncException.class,
        assertThrows(GradientSyncException.class, message::test).getClass());
  }

  /** Rank 1 has died, and rank 2 says what is in the memory that this returns. */
  private ByteBuffer wordOf2() throws MpiFailure {
    ByteBuffer word = ByteBuffer.allocateDirect(1);
    MpiRequest of2 = mock(MpiRequest.class);
    ByteBuffer[] received = new ByteBuffer[1];
    when(of2.test())
        .thenAnswer(
            call -> {
              received[0].put(0, word.get(0));
              return word.get(0) != 0;
            });
    when(world.sender(any(), anyInt(), anyInt())).thenReturn(mock(MpiRequest.class));
    when(world.receiver(any(), eq(2), anyInt()))
        .thenAnswer(
            call -> {
              received[0] = call.getArgument(0);
              return of2;
            });
    when(request.test()).thenThrow(FAILED);
    return word;
  }

  @Test
  void theEndWaitsForThoseThatLive() throws Exception {
    ByteBuffer word = wordOf2();
    MpiJob job = job(true);
    job.goOnWithout(List.of());
    assertFalse(job.haveAllCome());
    word.put(0, LastWords.END);
    assertTrue(job.haveAllCome());
    job.finish();
    assertTrue(job.isFinished());
    verify(mpi, never()).finish();
  }

  @Test
  void aRankThatIsLeftBehindWaitsForNobody() throws Exception {
    ByteBuffer word = wordOf2();
    MpiJob job = job(true);
    word.put(0, LastWords.GO_WITHOUT_YOU);
    assertTrue(job.haveAllCome());
    job.finish();
    assertTrue(job.isFinished());
    verify(mpi, never()).finish();
  }

  @Test
  void nobodyWaitsForARankThatIsLeftBehind() throws Exception {
    wordOf2();
    MpiJob job = job(true);
    job.goOnWithout(List.of(2));
    job.goOnWithout(List.of(2));
    ByteBuffer told = ByteBuffer.allocateDirect(1).put(0, LastWords.GO_WITHOUT_YOU);
    verify(world, times(1)).sender(eq(told), eq(2), anyInt());
    assertTrue(job.haveAllCome());
  }
}
