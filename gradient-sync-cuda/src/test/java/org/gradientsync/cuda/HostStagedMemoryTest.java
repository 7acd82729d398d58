package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.driver.KernelGate;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests when the reducer host-staged frees its memory on a GPU that other syncs use, too. */
@Timeout(60)
class HostStagedMemoryTest {
  private final SimulatedGpu[] gpus = {SimulatedGpu.unopened(), SimulatedGpu.unopened()};
  private final AtomicBoolean idle = new AtomicBoolean();

  @AfterEach
  void restore() {
    SimulatedDeviceProvider.use(null);
  }

  @Test
  void nothingIsFreedWhileAnotherSyncRunsKernels() {
    Arrays.stream(gpus).forEach(gpu -> gpu.otherKernels((arguments, blocks) -> {}));
    SimulatedDeviceProvider.use(rank -> gpus[rank].api());
    LocalRanks.run(
        2,
        builder -> builder.device("host").reducer("local"),
        outer -> {
          try (GradientSync sync =
                  GradientSync.builder()
                      .device(SimulatedDeviceProvider.KIND)
                      .reducer("host-staged")
                      .create();
              DeviceBuffer large = sync.allocate(DataType.FLOAT32, 200_000)) {
            KernelGate gate = ((CudaBuffer) large).stream().device().gpu().gate();
            BooleanSupplier other = idle::get;
            gate.add(other);
            gate.add(other);
            sync.average(large);
          }
        });
    for (int rank = 0; rank < gpus.length; rank++) {
      assertEquals(Map.of("memory", 2), gpus[rank].holds()); // the buffer, and the reducer's
      idle.set(true);
      DeferredFrees.of(gpus[rank].api(), gpus[rank].context(rank)).free();
      assertEquals(Map.of(), gpus[rank].holds());
    }
  }
}
