package org.gradientsync.mpi.direct;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.sun.jna.NativeLibrary;
import java.lang.invoke.MethodHandle;
import org.junit.jupiter.api.Test;

class RequestCallsTest {
  /** The first JDK that gives leave to call native code to a module that has loaded some. */
  private static final int ALLOWED = 24;

  @Test
  void functionsAreCalledWithoutJnaWhereThatIsAllowed() throws Throwable {
    MethodHandle abs = RequestCalls.find(NativeLibrary.getInstance("c"), "abs", 1);
    if (Runtime.version().feature() >= ALLOWED) {
      assertNotNull(abs);
    }
    if (abs != null) {
      assertEquals(7, (int) abs.invokeExact(-7L));
    }
  }
}
