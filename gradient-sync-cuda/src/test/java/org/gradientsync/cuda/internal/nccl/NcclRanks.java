package org.gradientsync.cuda.internal.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.when;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import jcuda.driver.CUevent;
import org.gradientsync.Communicator;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;

/** Runs ranks as threads, each with its own fake GPU and its own fake library. */
final class NcclRanks {
  private NcclRanks() {}

  /** One rank: its group for the test, and a communicator of all ranks that no test breaks. */
  record Rank(
      ProcessGroup group, Communicator everybody, FakeGpu gpu, CudaDevice device, FakeNccl nccl) {
    int rank() {
      return group.rank();
    }

    SyncContext context() {
      return new SyncContext(
          group,
          new GroupCommunicator(group),
          device,
          new Settings(Map.of("reducer", NcclReducer.NAME)),
          new OwnParts());
    }

    Reducer create() {
      return new NcclReducerProvider(settings -> nccl).create(context());
    }

    /** From now on the GPU begins calls, and does not end them until {@code over} is asked so. */
    AtomicInteger hang() {
      AtomicInteger ends = new AtomicInteger();
      AtomicInteger records = new AtomicInteger();
      Set<CUevent> ending =
          Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));
      doAnswer(
              call -> {
                if (records.incrementAndGet() % 2 == 0) {
                  ending.add(call.getArgument(0));
                }
                return null;
              })
          .when(gpu.api)
          .record(any(), any());
      when(gpu.api.isDone(any(CUevent.class)))
          .thenAnswer(call -> ends.get() > 0 || !ending.contains((CUevent) call.getArgument(0)));
      return ends;
    }
  }

  interface Task {
    void run(Rank rank) throws Exception;
  }

  static void run(int ranks, Task task) {
    run(ranks, "20", task);
  }

  /** Runs ranks whose calls time out after some seconds. */
  static void run(int ranks, String timeout, Task task) {
    LocalRanks.run(
        ranks,
        b -> b.device("host").reducer("local"),
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          FakeGpu gpu = new FakeGpu();
          Settings settings = new Settings(Map.of("timeout", timeout, "reports", "off"));
          try (ProcessGroup group = world.split(0, sync.rank(), settings.timeouts());
              CudaDevice device = gpu.open(sync.rank() % 2)) {
            Map<String, Integer> before = gpu.holds();
            FakeNccl nccl = new FakeNccl();
            task.run(new Rank(group, sync.communicator(), gpu, device, nccl));
            assertEquals(before, gpu.holds());
            sync.barrier();
          }
        });
  }
}
