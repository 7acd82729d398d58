package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.NotFiniteException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that a program that never waits through the library hears what has failed on its GPU. The
 * GPUs are fakes, and the tests write what kernels report.
 */
@Timeout(60)
class DeviceFailuresTest {
  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("a", DataType.FLOAT32, 10),
          new Parameter("b", DataType.FLOAT32, 10),
          new Parameter("c", DataType.FLOAT32, 10));

  private final FakeGpu[] gpus = {new FakeGpu(), new FakeGpu()};

  private interface Body {
    void run(GradientSync sync, FakeGpu gpu);
  }

  private void run(Body body) {
    SimulatedDeviceProvider.use(rank -> gpus[rank].api);
    LocalRanks.run(
        2,
        b ->
            b.device(SimulatedDeviceProvider.KIND)
                .reducer("peer")
                .requireFinite(true)
                .set("dev.peer.tuning", "off"),
        sync -> body.run(sync, gpus[sync.rank()]));
  }

  @AfterEach
  void forgetDrivers() {
    SimulatedDeviceProvider.use(null);
  }

  /** Writes that the kernel of call 1 has found something in registration 1, and has ended. */
  private static void findInFirstCall(FakeGpu gpu) {
    ByteBuffer found = gpu.pageLocked(0);
    found.putLong(8, 1L << 43 | 1);
    found.putLong(40, 1);
    found.putLong(64, 1);
  }

  private static void timeOut(FakeGpu gpu) {
    gpu.pageLocked(1).putLong(8, 2);
  }

  @Test
  void readyThrowsATimeOutAlthoughItStartsNoAverage() {
    run(
        (sync, gpu) -> {
          try (GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build()) {
            buckets.ready(2);
            sync.barrier();
            timeOut(gpu);
            assertThrows(RankLostException.class, () -> buckets.ready(1));
            assertThrows(IllegalStateException.class, () -> buckets.ready(0)); // they are broken
          }
        });
  }

  @Test
  void finishThrowsATimeOutBeforeItHandsOutAverages() {
    run(
        (sync, gpu) -> {
          try (GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build()) {
            for (int parameter = 2; parameter >= 0; parameter--) {
              buckets.ready(parameter);
            }
            sync.barrier();
            timeOut(gpu);
            assertThrows(
                RankLostException.class,
                () -> buckets.finish(parameter -> assertEquals(-1, parameter)));
          }
        });
  }

  @Test
  void finishThrowsWhatIsNotFiniteAndEndsTheStep() {
    run(
        (sync, gpu) -> {
          try (GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build()) {
            for (int step = 0; step < 2; step++) {
              for (int parameter = 2; parameter >= 0; parameter--) {
                buckets.ready(parameter);
              }
              if (step == 0) {
                sync.barrier();
                findInFirstCall(gpu);
                sync.barrier();
                assertThrows(NotFiniteException.class, buckets::finish);
              } else {
                buckets.finish();
              }
            }
          }
        });
  }

  @Test
  void closeThrowsWhatNoCallHasThrownOnceEverythingIsReleased() {
    NotFiniteException e =
        assertThrows(
            NotFiniteException.class,
            () ->
                run(
                    (sync, gpu) -> {
                      try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
                        sync.average(buffer);
                        sync.barrier();
                        findInFirstCall(gpu);
                        sync.barrier();
                      }
                    }));
    assertTrue(e.getMessage().contains("FLOAT32[10], index=0"), e::getMessage);
    for (FakeGpu gpu : gpus) {
      assertEquals(0, gpu.holds().getOrDefault("page-locked memory", 0));
      assertEquals(0, gpu.holds().getOrDefault("stream", 0));
    }
  }

  @Test
  void closeAddsNothingToAnExceptionOfACall() {
    GradientSyncException e =
        assertThrows(
            RankLostException.class,
            () ->
                run(
                    (sync, gpu) -> {
                      try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
                        sync.average(buffer);
                        sync.barrier();
                        timeOut(gpu);
                        sync.average(buffer);
                      }
                    }));
    assertTrue(e.getMessage().startsWith("timed out: "), e::getMessage);
    assertEquals(List.of(), List.of(e.getSuppressed()), e::toString);
  }
}
