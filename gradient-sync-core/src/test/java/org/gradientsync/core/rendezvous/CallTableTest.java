package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.function.IntToLongFunction;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;
import org.mockito.MockMakers;
import org.mockito.Mockito;

class CallTableTest {
  private static final int MANY = 256;

  /** Calls of all ranks: the count of each, and where it found an element that is not finite. */
  private static Rendezvous calls(int size, IntToLongFunction count, long notFinite) {
    Rendezvous rendezvous =
        Mockito.mock(Rendezvous.class, Mockito.withSettings().mockMaker(MockMakers.SUBCLASS));
    for (int rank = 0; rank < size; rank++) {
      ByteBuffer call = HostBuffers.allocate(CallRecord.BYTES);
      try (HostDevice device = new HostDevice();
          DeviceBuffer buffer = device.allocate(DataType.INT32, count.applyAsLong(rank))) {
        CollectiveCall sum = CollectiveCall.allReduce(buffer, ReduceOp.SUM);
        CallRecord.write(call, 7, 0, CallRecord.Origin.SYNC, sum, size);
      }
      CallRecord.writeNotFinite(call, notFinite);
      Mockito.when(rendezvous.call(rank)).thenReturn(call);
    }
    return rendezvous;
  }

  @Test
  void eachOfFewRanksHasALine() {
    String text = CallTable.ofMismatch(calls(16, rank -> rank == 3 ? 5 : 4, -1), 0, 16, false);
    assertTrue(text.contains("\n  rank 2: allReduce(INT32[4], SUM), call=7"), text);
    assertTrue(text.contains("\n  rank 3: allReduce(INT32[5], SUM), call=7"), text);
    assertEquals(1 + 16, text.lines().count(), text);
  }

  @Test
  void manyRanksWithTheSameCallHaveOneLine() {
    String text = CallTable.ofMismatch(calls(MANY, rank -> rank == 3 ? 5 : 4, -1), 0, MANY, false);
    assertEquals(
        "the ranks' calls do not match, rank=0:"
            + "\n  ranks 0-2, 4-255: allReduce(INT32[4], SUM), call=7"
            + "\n  rank 3: allReduce(INT32[5], SUM), call=7",
        text);
  }

  @Test
  void aTableOfManyCallsEnds() {
    String text = CallTable.ofMismatch(calls(MANY, rank -> rank, -1), 0, MANY, false);
    assertTrue(text.endsWith("\n  and 240 other calls"), text);
    assertEquals(1 + 16 + 1, text.lines().count(), text);
  }

  @Test
  void aTableOfManyRanksThatAreNotFiniteEnds() {
    String text = CallTable.ofNotFinite(calls(MANY, rank -> 9, 2), 0, MANY, null);
    assertTrue(text.contains("\n  rank 15: allReduce(INT32[9], SUM), call=7, first at index=2"));
    assertTrue(text.endsWith("\n  and 240 more ranks\n  this call changed no buffer"), text);
    assertEquals(1 + 16 + 2, text.lines().count(), text);
  }
}
