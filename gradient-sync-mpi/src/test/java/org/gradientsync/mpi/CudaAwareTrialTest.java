package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;

import java.util.Map;
import java.util.function.Consumer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;

/**
 * Tests the trial of {@code cuda-aware} with three ranks in host memory. If it fails anywhere, all
 * ranks report the reason and can use another reducer.
 */
class CudaAwareTrialTest {
  private static final int RANKS = 3;

  @Test
  void onePassesIt() {
    run(device -> {}, (provider, context) -> provider.create(context).close());
  }

  @Test
  void aRankWithoutMemoryIsAReason() {
    assertRefused(
        device ->
            doThrow(new GradientSyncException("no memory")).when(device).allocate(any(), anyLong()),
        "a trial with device memory failed: no memory (rank 1)");
  }

  @Test
  void soIsAKernelThatFails() {
    assertRefused(
        device ->
            doThrow(new IllegalArgumentException("too many"))
                .when(device)
                .reduce(any(), any(), any()),
        "the call failed in the middle: java.lang.IllegalArgumentException: too many");
  }

  @Test
  void andAJarThatDoesNotFit() {
    assertRefused(
        device -> doThrow(new NoSuchMethodError("old")).when(device).await(any()),
        "java.lang.NoSuchMethodError: old");
  }

  private static void assertRefused(Consumer<BackendDevice> fault, String reason) {
    run(
        fault,
        (provider, context) -> {
          UnavailableException e =
              assertThrows(UnavailableException.class, () -> provider.create(context));
          assertTrue(e.getMessage().contains(reason), e.getMessage());
        });
  }

  private static void run(Consumer<BackendDevice> faultOfRank1, Attempt attempt) {
    LocalRanks.run(
        RANKS,
        sync -> {
          ProcessGroup world = LocalWorld.current().orElseThrow();
          try (BackendDevice host = new HostDevice();
              ProcessGroup group = world.split(0, world.rank(), world.timeouts())) {
            BackendDevice device = mock(BackendDevice.class, delegatesTo(host));
            if (group.rank() == 1) {
              faultOfRank1.accept(device);
            }
            attempt.on(
                new CudaAwareReducerProvider(Availability::yes, timeout -> Availability.yes()),
                new SyncContext(
                    group,
                    new GroupCommunicator(group),
                    device,
                    new Settings(Map.of()),
                    new OwnParts()));
            assertFalse(group.isBroken());
            new GroupCommunicator(group).barrier(); // the ranks can still meet
          }
        });
  }

  private interface Attempt {
    void on(ReducerProvider provider, SyncContext context);
  }
}
