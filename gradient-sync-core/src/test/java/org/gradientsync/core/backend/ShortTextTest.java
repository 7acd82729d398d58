package org.gradientsync.core.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.CallRecord;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;

/** Texts of other ranks in this rank's log. */
class ShortTextTest {
  @Test
  void textIsTruncatedWithoutControlCharacters() {
    ByteBuffer memory = ByteBuffer.allocate(16);
    ShortText.put(memory, 4, 8, "a\n\u001b[2Jbcdefgh");
    assertEquals("a  [2Jbc", ShortText.get(memory, 4, 8));
    assertEquals(0, memory.getInt(0));
    assertEquals(0, memory.getInt(12));
  }

  @Test
  void lineBreaksAndDirectionMarksBecomeBlanks() {
    assertEquals("a b c d e", ShortText.oneLine("a\u0085b\u2028c\u202ed\u2029e"));
    assertEquals("w\u00e4 \ud83d\ude00", ShortText.oneLine("w\u00e4 \ud83d\ude00"));
  }

  @Test
  void bufferNamesStayOnOneLine() {
    try (HostDevice device = new HostDevice();
        AbstractDeviceBuffer buffer = device.allocate(DataType.INT32, 3).named("a\u2028b")) {
      ByteBuffer call = ByteBuffer.allocate(CallRecord.BYTES);
      CollectiveCall max = CollectiveCall.allReduce(buffer, ReduceOp.MAX);
      CallRecord.write(call, 7, 0, CallRecord.Origin.SYNC, max, 1);
      assertEquals("allReduce(INT32[3] \"a b\", MAX), call=7", CallRecord.describe(call));
    }
  }
}
