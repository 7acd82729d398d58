package org.gradientsync.mpi.direct;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.NativeLibrary;
import java.lang.invoke.MethodHandle;
import org.junit.jupiter.api.Test;

class RequestCallsTest {
  /** The first JDK that enables native access for a module that has loaded a library. */
  private static final int ENABLES = 24;

  private static final NativeLibrary C = NativeLibrary.getInstance("c");

  @Test
  void functionsAreCalledWithoutJnaWhereNativeAccessIsEnabled() throws Throwable {
    MethodHandle abs = RequestCalls.find(C, "abs", 1);
    MethodHandle memcmp = RequestCalls.find(C, "memcmp", 3);
    assertEquals(abs == null, memcmp == null);
    if (abs == null) {
      assertTrue(Runtime.version().feature() < ENABLES);
      return;
    }
    assertEquals(7, (int) abs.invokeExact(-7L));
    NativeBlock block = NativeBlock.of(8);
    block.bytes().putInt(0, 1).putInt(4, 2);
    long first = block.address();
    assertTrue((int) memcmp.invokeExact(first, first + 4, 4L) < 0);
    assertTrue((int) memcmp.invokeExact(first + 4, first, 4L) > 0);
    assertEquals(0, (int) memcmp.invokeExact(first, first, 4L));
  }
}
