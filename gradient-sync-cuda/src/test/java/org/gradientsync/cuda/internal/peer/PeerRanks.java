package org.gradientsync.cuda.internal.peer;

import java.util.HashMap;
import java.util.Map;
import org.gradientsync.Communicator;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.FakeGpu;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.gradientsync.spi.Timeouts;

/** Runs ranks as threads, each with its own fake GPU. */
final class PeerRanks {
  private static final Timeouts TIMEOUTS = new Settings(Map.of("timeout", "20")).timeouts();

  /** Rank 0 uses the first GPU, rank 1 the second, rank 2 the first again, and so on. */
  static final int GPUS = 2;

  private PeerRanks() {}

  /** One rank: its group for the test, and a communicator of all ranks that no test breaks. */
  record Rank(ProcessGroup group, Communicator everybody, FakeGpu gpu, CudaDevice device) {
    int rank() {
      return group.rank();
    }

    SyncContext context(String... settings) {
      Map<String, String> chosen = new HashMap<>();
      chosen.put("dev.peer.sharing", group.size() > GPUS ? "on" : "off");
      for (int i = 0; i < settings.length; i += 2) {
        chosen.put(settings[i], settings[i + 1]);
      }
      return new SyncContext(
          group, new GroupCommunicator(group), device, new Settings(chosen), new OwnParts());
    }
  }

  interface Task {
    void run(Rank rank) throws Exception;
  }

  static void run(int ranks, Task task) {
    LocalRanks.run(
        ranks,
        b -> b.device("host").reducer("local"),
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          FakeGpu gpu = new FakeGpu();
          try (ProcessGroup group = world.split(0, sync.rank(), TIMEOUTS);
              CudaDevice device = gpu.open(sync.rank() % GPUS)) {
            task.run(new Rank(group, sync.communicator(), gpu, device));
            sync.barrier();
          }
        });
  }
}
