package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.ServiceLoader;
import org.gradientsync.DataType;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.launch.LaunchedJob;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaDeviceProvider;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.DeviceRequest;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests on real GPUs that a kernel of NCCL that waits in vain is aborted. Needs two ranks. */
@Timeout(120)
class NcclStuckOnGpu {
  /** Only rank 0 times out. The first half of it is for creating the communicator. */
  private static Settings settings(int rank) {
    return new Settings(
        Map.of("reducer", NcclReducer.NAME, "timeout", rank == 0 ? "20" : "90", "reports", "off"));
  }

  @Test
  void aCallThatOtherRanksDoNotEnqueueTimesOut() {
    if (System.getenv("OMPI_COMM_WORLD_SIZE") != null) {
      for (Launcher launcher : ServiceLoader.load(Launcher.class)) {
        if (launcher.launched()) {
          callsAlone(LaunchedJob.connect(launcher, settings(0)));
        }
      }
      return;
    }
    Assumptions.assumeTrue(CudaLibrary.api().deviceCount() > 1, "threads need a GPU each");
    LocalRanks.run(
        2,
        b -> b.device("host").reducer("local"),
        sync -> callsAlone(LocalWorld.current().orElseThrow()));
  }

  private static void callsAlone(ProcessGroup world) {
    Settings settings = settings(world.rank());
    try (ProcessGroup group = world.split(0, world.rank(), settings.timeouts());
        CudaDevice device =
            (CudaDevice)
                new CudaDeviceProvider()
                    .open(
                        new DeviceRequest(
                            world.rank(),
                            world.job().place(),
                            world.job().ranksOnNode(),
                            settings));
        Reducer reducer =
            new NcclReducerProvider()
                .create(
                    new SyncContext(
                        group, new GroupCommunicator(group), device, settings, new OwnParts()));
        CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1000)) {
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
      device.stream().await();
      if (group.rank() > 0) {
        synchronized (group) {
          group.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM), call -> {}); // enqueues nothing
        }
        assertThrows(RankLostException.class, new GroupCommunicator(group)::barrier);
        return;
      }
      reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.SUM));
      RankLostException e = assertThrows(RankLostException.class, () -> device.stream().await());
      assertTrue(
          e.getMessage()
              .startsWith("timed out: allReduce(FLOAT32[1000], SUM) has not ended on the GPU"),
          e.getMessage());
      device.stream().await(); // the kernel has ended
    }
  }
}
