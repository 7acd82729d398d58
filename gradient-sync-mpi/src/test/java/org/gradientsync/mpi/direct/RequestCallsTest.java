package org.gradientsync.mpi.direct;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.lang.invoke.MethodHandle;
import org.junit.jupiter.api.Test;

class RequestCallsTest {
  private static final NativeLibrary C = NativeLibrary.getInstance("c");

  @Test
  void functionsAreCalledWithoutJna() throws Throwable {
    requireCalls(RequestCalls.find(C, "abs", 1), RequestCalls.find(C, "memcmp", 3));
  }

  @Test
  void functionsAreCalledThroughJffi() throws Throwable {
    requireCalls(
        JffiCalls.find(addressOf("abs"), 1), //
        JffiCalls.find(addressOf("memcmp"), 3));
  }

  private static long addressOf(String function) {
    return Pointer.nativeValue(C.getFunction(function));
  }

  private static void requireCalls(MethodHandle abs, MethodHandle memcmp) throws Throwable {
    assertNotNull(abs);
    assertEquals(7, (int) abs.invokeExact(-7L));
    NativeBlock block = NativeBlock.of(8);
    block.bytes().putInt(0, 1).putInt(4, 2);
    long first = block.address();
    assertTrue((int) memcmp.invokeExact(first, first + 4, 4L) < 0);
    assertTrue((int) memcmp.invokeExact(first + 4, first, 4L) > 0);
    assertEquals(0, (int) memcmp.invokeExact(first, first, 4L));
  }
}
