package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.function.BooleanSupplier;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.Logged;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class UnclosedTest {
  @Test
  void aBufferThatIsNeverClosedIsWarnedOfOnce() {
    Unclosed.forgetWarnings();
    try (Logged logged = new Logged();
        GradientSync sync = GradientSync.create()) {
      for (int i = 0; i < 3; i++) {
        sync.allocate(DataType.FLOAT32, 4711).named("lost");
      }
      sync.allocate(DataType.FLOAT32, 4712).close();
      String warning = "never closed: buffer host FLOAT32[4711] \"lost\"; close it";
      collectUntil(() -> logged.text().contains(warning));
      collectOnce();
      assertEquals(1, logged.text().lines().filter(l -> l.contains("4711")).count());
      assertTrue(!logged.text().contains("4712"), logged.text());
    }
  }

  @Test
  void aSyncThatIsNeverClosedIsWarnedOf() {
    Unclosed.forgetWarnings();
    try (Logged logged = new Logged()) {
      useWithoutClosing();
      collectUntil(() -> logged.text().contains("never closed: sync of rank 0 of 1; close it"));
    }
  }

  private static void useWithoutClosing() {
    GradientSync sync = GradientSync.create();
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
      sync.average(buffer);
    }
  }

  /** Fails by the time-out of the test. */
  private static void collectUntil(BooleanSupplier done) {
    while (!done.getAsBoolean()) {
      collectOnce();
    }
  }

  private static void collectOnce() {
    System.gc();
    try {
      Thread.sleep(5);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
