package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.gradientsync.cuda.internal.driver.DriverAccess;
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
