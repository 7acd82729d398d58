package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import org.gradientsync.DataType;
import org.gradientsync.spi.Unclosed;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class UnclosedBufferTest {
  @Test
  void aBufferThatIsNeverClosedIsWarnedOf()
      throws ReflectiveOperationException, InterruptedException {
    // Tests before this one may have left more garbage than a process warns of.
    Method allow = Unclosed.class.getDeclaredMethod("allowWarnings", int.class);
    allow.setAccessible(true);
    allow.invoke(null, Integer.MAX_VALUE);
    PrintStream before = System.err;
    ByteArrayOutputStream logged = new ByteArrayOutputStream();
    System.setErr(new PrintStream(logged, true, StandardCharsets.UTF_8));
    try (SimulatedGpu gpu = new SimulatedGpu()) {
      gpu.device().allocate(DataType.FLOAT32, 4711, gpu.device().stream());
      gpu.device().allocate(DataType.FLOAT32, 4712).close();
      while (!logged.toString().contains("never closed: buffer cuda FLOAT32[4711]; close it")) {
        System.gc(); // fails by the time-out
        Thread.sleep(5);
      }
      assertFalse(logged.toString().contains("4712"), logged::toString);
    } finally {
      allow.invoke(null, 0); // later tests may count what is logged
      System.setErr(before);
    }
  }
}
