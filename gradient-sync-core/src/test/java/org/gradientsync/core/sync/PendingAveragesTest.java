package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.NotFiniteException;
import org.gradientsync.PendingAverage;
import org.gradientsync.RankLostException;
import org.gradientsync.core.buckets.CommunicationThread;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PendingAveragesTest {
  /** It would wait for itself. */
  @Test
  void aListenerCannotWaitForALaterAverage() {
    LocalRanks.run(
        2,
        sync -> {
          CountDownLatch started = new CountDownLatch(1);
          AtomicReference<PendingAverage> later = new AtomicReference<>();
          AtomicReference<IllegalStateException> thrown = new AtomicReference<>();
          try (DeviceBuffer first = sync.allocate(DataType.FLOAT32, 4);
              DeviceBuffer second = sync.allocate(DataType.FLOAT32, 4)) {
            sync.observe(
                average -> {
                  if (thrown.get() == null) {
                    try {
                      started.await();
                      later.get().await();
                    } catch (IllegalStateException e) {
                      thrown.set(e);
                    } catch (InterruptedException e) {
                      Thread.currentThread().interrupt();
                    }
                  }
                });
            PendingAverage earlier = sync.averageAsync(first);
            later.set(sync.averageAsync(second));
            started.countDown();
            earlier.await();
            later.get().await();
            String text = thrown.get().getMessage();
            assertTrue(text.contains("a hook or a listener waits for a later average"), text);
            assertEquals(2, sync.communicator().sum(1));
          }
        });
  }

  @Test
  void closingTheSyncIsTheReasonWhyOneIsGivenUp() {
    CountDownLatch closed = new CountDownLatch(1);
    LocalRanks.run(
        2,
        sync -> {
          DeviceBuffer first = sync.allocate(DataType.FLOAT32, 4);
          DeviceBuffer second = sync.allocate(DataType.FLOAT32, 4);
          if (sync.rank() == 0) {
            PendingAverage running = sync.averageAsync(first);
            PendingAverage waiting = sync.averageAsync(second);
            Thread.sleep(100); // usually it waits for rank 1 then
            sync.close();
            for (PendingAverage average : List.of(running, waiting)) {
              String text = assertThrows(IllegalStateException.class, average::await).getMessage();
              assertEquals(
                  "averages were given up, because their sync was closed: rank=0; await() them"
                      + " before",
                  text);
            }
            closed.countDown();
          } else {
            closed.await();
            String text =
                assertThrows(RankLostException.class, () -> sync.average(first)).getMessage();
            assertTrue(text.contains("closed") && !text.contains("interrupted"), text);
          }
          first.close();
          second.close();
        });
  }

  @Test
  void theFailureOfOneThatNobodyWaitsForIsThrownByTheNextStart() {
    LocalRanks.run(
        2,
        builder -> builder.requireFinite(true),
        sync -> {
          try (DeviceBuffer first = sync.allocate(DataType.FLOAT32, 4);
              DeviceBuffer second = sync.allocate(DataType.FLOAT32, 4)) {
            first.copyFrom(new float[] {1, 2, sync.rank() == 0 ? Float.NaN : 3, 4});
            second.copyFrom(new float[] {0, 2, 4, 2 * sync.rank()});
            sync.averageAsync(first);
            sync.averageAsync(second).await();
            NotFiniteException e =
                assertThrows(NotFiniteException.class, () -> sync.averageAsync(second));
            assertTrue(e.getMessage().contains("first at index=2"), e.getMessage());
            float[] values = new float[4];
            second.copyTo(values);
            assertArrayEquals(new float[] {0, 2, 4, 1}, values);
            sync.averageAsync(second).await(); // it was reported
            sync.barrier();
          }
        });
  }

  @Test
  void thoseThatNobodyWaitsForAreForgotten() throws InterruptedException {
    PendingAverages pending = new PendingAverages();
    try (CommunicationThread thread = new CommunicationThread(0, (why, cause) -> {})) {
      WeakReference<PendingAverage> first = new WeakReference<>(pending.start(thread, () -> {}));
      pending.start(thread, () -> {}).await();
      pending.start(thread, () -> {});
      for (int i = 0; i < 100 && first.get() != null; i++) {
        System.gc();
        Thread.sleep(10);
      }
      assertNull(first.get());
    }
  }
}
