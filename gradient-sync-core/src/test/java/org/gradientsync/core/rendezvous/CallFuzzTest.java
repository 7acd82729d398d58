package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.host.HostDevice;

/** Calls as another rank may send them: any bytes. */
class CallFuzzTest {
  private static final int LONGEST = 190;

  private static ByteBuffer call(FuzzedDataProvider data) {
    ByteBuffer call = ByteBuffer.allocateDirect(CallRecord.BYTES).order(ByteOrder.nativeOrder());
    for (int at = 0; at < CallRecord.BYTES; at += Long.BYTES) {
      if (data.consumeBoolean()) { // often almost valid
        call.putInt(at, data.consumeInt(-2, 110));
        call.putInt(at + Integer.BYTES, data.consumeInt(-2, 110));
      } else {
        call.putLong(at, data.consumeLong());
      }
    }
    return call;
  }

  @FuzzTest
  void anyBytesAreDescribed(FuzzedDataProvider data) {
    ByteBuffer call = call(data);
    String text = CallRecord.describe(call);
    assertTrue(text.length() < LONGEST, text);
    assertEquals(!CallRecord.isValid(call), text.startsWith("an unknown call"), text);
  }

  @FuzzTest
  void anyBytesAreCompared(FuzzedDataProvider data) {
    ByteBuffer a = call(data);
    ByteBuffer b = call(data);
    assertTrue(CallRecord.same(a, a));
    assertTrue(CallRecord.samePair(a, a));
    assertEquals(CallRecord.same(a, b), CallRecord.same(b, a));
    assertEquals(CallRecord.samePair(a, b), CallRecord.samePair(b, a));
    assertEquals(CallRecord.BYTES, a.remaining(), "a position was moved");
  }

  /** The place of another rank's buffer lies in the mapped memory, or is refused. */
  @FuzzTest
  void aClaimedPlaceIsInTheMemoryOrRefused(FuzzedDataProvider data) {
    ByteBuffer call = call(data);
    int own = data.consumeInt(0, 200);
    try (HostDevice device = new HostDevice();
        DeviceBuffer mapped = device.allocate(DataType.INT32, 100)) {
      long first = CallRecord.memoryOffset(call);
      try (DeviceBuffer part = mapped.slice(first, own)) {
        assertTrue(first >= 0 && first + own <= 100, () -> "first=" + first + ", count=" + own);
        assertEquals(own, part.count());
      } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
        assertTrue(first < 0 || first > 100 - own, () -> "first=" + first + ", count=" + own);
      }
    }
  }
}
