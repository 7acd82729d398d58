package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Parameter;
import org.gradientsync.test.faults.Faults;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Injects faults into a program that allocates its buffers on the GPU itself. */
@Timeout(60)
class CudaFaultsTest {
  @RegisterExtension final Faults faults = new Faults();

  @AfterEach
  void giveNoMoreGpus() {
    SimulatedDeviceProvider.use(null);
  }

  @Test
  void copiesOfAllBuffersOfTheGpuCount() {
    SimulatedGpu gpu = SimulatedGpu.unopened();
    gpu.otherKernels((arguments, blocks) -> {});
    SimulatedDeviceProvider.use(rank -> gpu.api());
    for (int copy = 1; copy <= 5; copy++) {
      faults.onRank(0).atCopy(copy).deviceError("ECC, copy " + copy);
    }
    GradientSync.Builder builder = GradientSync.builder().device(SimulatedDeviceProvider.KIND);
    try (GradientSync sync = faults.install(builder).create();
        GradientBuckets buckets =
            GradientBuckets.builder(sync, List.of(new Parameter("a", DataType.FLOAT32, 4)))
                .unevenSteps()
                .build()) {
      CudaDevice device = (CudaDevice) sync.device();
      try (CudaStream stream = device.createStream();
          CudaBuffer own = device.allocate(DataType.FLOAT32, 4, stream);
          CudaBuffer wrapped = device.wrap(DataType.FLOAT32, own.address(), 4, stream)) {
        fails(1, own);
        fails(2, wrapped);
        fails(3, own.slice(0, 4));
        fails(4, device.on(device.stream(), own));
        fails(5, buckets.gradient(0));
        own.copyFrom(new float[] {1, 2, 3, 4});
        float[] seen = new float[4];
        wrapped.copyTo(seen);
        assertEquals(4, seen[3]);
      }
    }
  }

  private static void fails(int copy, DeviceBuffer buffer) {
    GradientSyncException e =
        assertThrows(GradientSyncException.class, () -> buffer.copyFrom(new float[4]));
    assertTrue(e.getMessage().contains("ECC, copy " + copy + ","), e.getMessage());
  }
}
