package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;

import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.driver.GpuMemory;
import org.junit.jupiter.api.Test;

class PeerSharingTest {
  private static final List<String> TWO_OF_THREE = List.of("a", "b", "a");

  @Test
  void ranksOfOneGpuHaveAPartEach() {
    assertEquals(0, new PeerSharing(TWO_OF_THREE, 0).turn());
    assertEquals(0, new PeerSharing(TWO_OF_THREE, 1).turn());
    assertEquals(1, new PeerSharing(TWO_OF_THREE, 2).turn());
    assertEquals(66, new PeerSharing(TWO_OF_THREE, 1).part(132));
    assertEquals(132, new PeerSharing(List.of("a", "b"), 1).part(132));
  }

  @Test
  void measurementsOfSharedGpusAreKeptApart() {
    assertEquals("H200", new PeerSharing(List.of("a", "b"), 0).nameOf("H200"));
    assertEquals("H200 shared", new PeerSharing(TWO_OF_THREE, 0).nameOf("H200"));
  }

  @Test
  void allIsPlannedFirstWhereAGpuIsShared() {
    assertEquals(
        List.of(ReduceOp.AVERAGE), new PeerSharing(List.of("a"), 0).plannedFirst(DataType.FLOAT32));
    assertEquals(
        List.of(ReduceOp.SUM), new PeerSharing(List.of("a"), 0).plannedFirst(DataType.INT32));
    assertEquals(
        List.of(ReduceOp.values()),
        new PeerSharing(TWO_OF_THREE, 1).plannedFirst(DataType.FLOAT32));
  }

  @Test
  void memoryOfASharedGpuIsFreedWhereAllRanksMeet() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      GpuMemory memory = DriverAccess.gpu(device).memory();
      PeerSharing sharing = new PeerSharing(TWO_OF_THREE, 0);
      sharing.begin(memory);
      device.allocate(DataType.FLOAT32, 1).close();
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, never()).free(anyLong());
      sharing.met(memory);
      verify(gpu.api, times(2)).free(anyLong());
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(2)).free(anyLong());
      sharing.end(memory);
      verify(gpu.api, times(3)).free(anyLong());
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(4)).free(anyLong());
    }
  }

  @Test
  void memoryIsFreedWhenTheLastSyncOfASharedGpuEnds() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      GpuMemory memory = DriverAccess.gpu(device).memory();
      PeerSharing sharing = new PeerSharing(TWO_OF_THREE, 0);
      sharing.begin(memory);
      sharing.begin(memory);
      device.allocate(DataType.FLOAT32, 1).close();
      sharing.end(memory);
      verify(gpu.api, never()).free(anyLong());
      sharing.end(memory);
      verify(gpu.api, times(1)).free(anyLong());
    }
  }

  @Test
  void memoryOfAGpuThatIsNotSharedIsFreedAtOnce() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      new PeerSharing(List.of("a", "b"), 0).begin(DriverAccess.gpu(device).memory());
      device.allocate(DataType.FLOAT32, 1).close();
      verify(gpu.api, times(1)).free(anyLong());
    }
  }

  @Test
  void streamsOfASharedGpuRunAKernelBeforeTheyAreUsed() {
    FakeGpu gpu = new FakeGpu();
    try (CudaDevice device = gpu.open(0)) {
      new PeerSharing(List.of("a", "b"), 0).prepareStreams(DriverAccess.stream(device.stream()));
      device.createStream(true).close();
      assertEquals(List.of(), gpu.launched);
      new PeerSharing(TWO_OF_THREE, 0).prepareStreams(DriverAccess.stream(device.stream()));
      device.createStream(true).close();
      assertEquals(List.of("reduce_FLOAT32_SUM", "reduce_FLOAT32_SUM"), gpu.launched);
    }
  }
}
