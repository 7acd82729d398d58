package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests calls in groups on simulated GPUs: what is enqueued, and what graphs keep. */
@Timeout(60)
class GroupedGraphsTest {
  private final SimulatedGpu[] gpus = {SimulatedGpu.unopened(), SimulatedGpu.unopened()};

  @AfterEach
  void restore() {
    SimulatedDeviceProvider.use(null);
  }

  private void run(Consumer<GradientSync> work) {
    Arrays.stream(gpus).forEach(gpu -> gpu.otherKernels((arguments, blocks) -> {}));
    SimulatedDeviceProvider.use(rank -> gpus[rank].api());
    LocalRanks.run(
        2,
        builder -> builder.device("host").reducer("local"),
        outer -> {
          try (GradientSync sync =
              GradientSync.builder()
                  .device(SimulatedDeviceProvider.KIND)
                  .reducer("peer")
                  .set("dev.peer.tuning", "off")
                  .create()) {
            work.accept(sync);
          }
        });
    for (SimulatedGpu gpu : gpus) {
      for (int ordinal = 0; ordinal < gpus.length; ordinal++) {
        DeferredFrees.of(gpu.api(), gpu.context(ordinal)).free();
      }
      assertEquals(Map.of(), gpu.holds());
    }
  }

  private static DeviceBuffer[] buffers(GradientSync sync, int count) {
    DeviceBuffer[] buffers = new DeviceBuffer[count];
    Arrays.setAll(buffers, i -> sync.allocate(DataType.FLOAT32, 1024));
    return buffers;
  }

  private static void average(GradientSync sync, DeviceBuffer... buffers) {
    sync.grouped(() -> Arrays.stream(buffers).forEach(sync::average));
  }

  @Test
  void aGroupIsOneCallAndTwoCopiesOfAllBuffers() {
    run(
        sync -> {
          DeviceBuffer[] buffers = buffers(sync, 100);
          average(sync, buffers);
          SimulatedGpu gpu = gpus[sync.rank()];
          gpu.takeEnqueued();
          average(sync, buffers);
          List<String> enqueued = gpu.takeEnqueued();
          assertEquals(2, Collections.frequency(enqueued, "copy_many"), enqueued::toString);
          assertEquals(3, enqueued.size(), enqueued::toString);
        });
  }

  @Test
  void largeBuffersDoNotDivideThoseThatArePacked() {
    run(
        sync -> {
          DeviceBuffer[] buffers = buffers(sync, 4);
          buffers[1].close();
          buffers[1] = sync.allocate(DataType.FLOAT32, (4 << 20) / Float.BYTES + 1);
          average(sync, buffers);
          SimulatedGpu gpu = gpus[sync.rank()];
          gpu.takeEnqueued();
          average(sync, buffers);
          List<String> enqueued = gpu.takeEnqueued();
          assertEquals(2, Collections.frequency(enqueued, "copy_many"), enqueued::toString);
          assertEquals(4, enqueued.size(), enqueued::toString);
        });
  }

  @Test
  void aLargeGroupIsOneCallWithoutCopies() {
    run(
        sync -> {
          DeviceBuffer[] buffers = buffers(sync, 2);
          DeviceBuffer[] all = Arrays.copyOf(buffers, 5);
          for (int i = 2; i < all.length; i++) {
            all[i] = sync.allocate(DataType.FLOAT32, (3 << 20) / Float.BYTES + i);
          }
          average(sync, all);
          SimulatedGpu gpu = gpus[sync.rank()];
          gpu.takeEnqueued();
          average(sync, all);
          assertEquals(List.of("graph"), gpu.takeEnqueued());
          sync.grouped(() -> Arrays.stream(all).forEach(b -> sync.allReduce(b, ReduceOp.MAX)));
          assertTrue(gpu.takeEnqueued().contains("copy_many")); // nobody needs it for gradients
          all[3].close();
          average(sync, all[2], all[4]);
        });
  }

  /** Memory that others cannot map is copied, as if it were small. */
  @Test
  void aLargeGroupThatCannotBeMappedIsCopied() {
    gpus[1].refuseExports(bytes -> bytes > 3 << 20 && bytes < 4 << 20);
    run(
        sync -> {
          DeviceBuffer[] all = new DeviceBuffer[3];
          Arrays.setAll(all, i -> sync.allocate(DataType.FLOAT32, (3 << 20) / Float.BYTES + i));
          average(sync, all);
          SimulatedGpu gpu = gpus[sync.rank()];
          gpu.takeEnqueued();
          average(sync, all);
          assertEquals(List.of("copy_many", "graph", "copy_many"), gpu.takeEnqueued());
        });
  }

  @Test
  void aGroupIsMadeOnceBeforeItIsCaptured() {
    run(
        sync -> {
          DeviceBuffer[] two = buffers(sync, 2);
          CudaStream stream = ((CudaBuffer) two[0]).stream();
          stream.beginCapture();
          two[0].fillZero();
          String text =
              assertThrows(IllegalStateException.class, () -> average(sync, two)).getMessage();
          assertTrue(text.startsWith("the stream is being captured: buffer="), text);
          assertTrue(text.endsWith("make the same group once before"), text);
          stream.endCapture().close();
          average(sync, two);
          stream.beginCapture();
          average(sync, two);
          try (CudaGraph graph = stream.endCapture()) {
            graph.launch(stream);
          }
        });
  }

  @Test
  void theMemoryOfACapturedGroupStaysUntilOneOfItsBuffersIsClosed() {
    run(
        sync -> {
          DeviceBuffer[] two = buffers(sync, 2);
          CudaStream stream = ((CudaBuffer) two[0]).stream();
          average(sync, two);
          stream.beginCapture();
          average(sync, two);
          try (CudaGraph graph = stream.endCapture()) {
            DeviceBuffer[] others = buffers(sync, 40);
            for (int i = 0; i < 20; i++) {
              average(sync, others[2 * i], others[2 * i + 1]);
            }
            graph.launch(stream);
            average(sync, two); // prepared anew
            graph.launch(stream);
            two[1].close();
            assertThrows(IllegalStateException.class, () -> graph.launch(stream));
          }
        });
  }
}
