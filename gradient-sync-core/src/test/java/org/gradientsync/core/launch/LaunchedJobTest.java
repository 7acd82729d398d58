package org.gradientsync.core.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.group.OtherWorld;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;

class LaunchedJobTest {
  private static Launcher launcher(Transport transport) {
    return new Launcher() {
      @Override
      public String name() {
        return "other";
      }

      @Override
      public boolean launched() {
        return false;
      }

      @Override
      public Transport connect(Settings settings) {
        return transport;
      }
    };
  }

  @Test
  void aTransportThatCannotBeUsedIsNamedAndClosed() {
    AtomicInteger closed = new AtomicInteger();
    LocalRanks.run(
        1,
        sync -> {
          Transport wrong =
              new OtherWorld() {
                @Override
                public int rank() {
                  return 7;
                }

                @Override
                public void close() {
                  closed.incrementAndGet();
                }
              };
          IllegalArgumentException e =
              assertThrows(
                  IllegalArgumentException.class,
                  () -> LaunchedJob.connect(launcher(wrong), new Settings(Map.of())));
          assertTrue(e.getMessage().contains("rank=7, size=1"), e.getMessage());
        });
    assertEquals(1, closed.get());
  }
}
