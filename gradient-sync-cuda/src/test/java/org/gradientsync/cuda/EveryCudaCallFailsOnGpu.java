package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.cuda.internal.driver.CudaLibrary;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Repeats {@link EveryCudaCallFailsTest} on real GPUs. Calls fail before they reach the driver.
 * Everything taken before must be released, and no rank may wait forever.
 */
class EveryCudaCallFailsOnGpu {
  private static final int RANKS = 2;
  private static final Duration HANGS = Duration.ofSeconds(60);
  private static final Duration TIMEOUT = Duration.ofSeconds(2); // also the deadline of the kernels
  private static final int CALLS_AT_MOST = 40; // upper limit; each one fails in its own run

  /** Loaded modules and the driver's own caches take far less than a mailbox. */
  private static final long SLACK = 8 << 20;

  @AfterEach
  void end() {
    SimulatedDeviceProvider.use(null);
  }

  @ParameterizedTest
  @CsvSource({"host-staged, 1", "host-staged, 2", "peer, 1", "peer, 2"})
  void failuresLeakNothing(String reducer, int ranks) {
    Assumptions.assumeTrue(
        CudaLibrary.api().deviceCount() >= ranks, "SKIPPED: there are fewer GPUs than ranks");
    int[] codes = {FaultyCudaApi.OUT_OF_MEMORY, FaultyCudaApi.LAUNCH_FAILED};
    FaultyCudaApi counted = run(reducer, ranks, 0, 0);
    run(reducer, ranks, 0, 0); // now everything that is loaded once is loaded
    List<Integer> calls = counted.callsToFail();
    int step = Math.max(1, calls.size() / CALLS_AT_MOST);
    long before = freeBytes(ranks);
    for (int i = 0; i < calls.size(); i += step) {
      for (int code : codes) {
        FaultyCudaApi faulty = run(reducer, ranks, calls.get(i), code);
        long lost = before - freeBytes(ranks);
        int call = calls.get(i);
        assertTrue(
            lost <= SLACK,
            () -> "bytes lost=" + lost + ", call=" + call + " (" + faulty.failed() + ")");
      }
    }
    run(reducer, ranks, 0, 0); // the GPUs still work
  }

  /** Runs all ranks, and makes one call of rank 0 fail; none if {@code call} is 0. */
  private static FaultyCudaApi run(String reducer, int ranks, int call, int code) {
    FaultyCudaApi faulty = new FaultyCudaApi(CudaLibrary.api());
    if (call > 0) {
      faulty.failAt(call, code);
    } else {
      faulty.trace();
    }
    SimulatedDeviceProvider.use(rank -> rank == 0 ? faulty.api() : CudaLibrary.api());
    List<Throwable> outcomes = new ArrayList<>();
    assertTimeoutPreemptively(HANGS, () -> outcomes.add(outcome(reducer, ranks)));
    Throwable outcome = outcomes.get(0);
    if (call == 0) {
      assertEquals(null, outcome);
    } else if (outcome != null) {
      assertTrue(outcome instanceof GradientSyncException, outcome::toString);
    }
    for (int gpu = 0; gpu < ranks; gpu++) { // unmapped memory of other ranks
      try (CudaDevice device = new CudaDevice(CudaLibrary.api(), gpu)) {
        DeferredFrees.of(faulty.api(), DriverAccess.gpu(device).context()).free();
      }
    }
    return faulty;
  }

  private static Throwable outcome(String reducer, int ranks) {
    try {
      LocalRanks.run(ranks, b -> b.device("host").reducer("local"), outer -> work(reducer));
      return null;
    } catch (GradientSyncException e) {
      return e.getMessage().startsWith("rank ") && e.getCause() != null ? e.getCause() : e;
    }
  }

  private static void work(String reducer) {
    float[] values = new float[200_000];
    try (GradientSync sync =
            GradientSync.builder()
                .device(SimulatedDeviceProvider.KIND)
                .reducer(reducer)
                .set("dev.peer.tuning", "off")
                .timeout(TIMEOUT)
                .create();
        DeviceBuffer small = sync.allocate(DataType.FLOAT32, 10);
        DeviceBuffer large = sync.allocate(DataType.FLOAT32, values.length)) {
      large.copyFrom(values);
      sync.broadcast(large, 0);
      sync.average(small);
      sync.average(large);
      large.copyTo(values);
    }
  }

  private static long freeBytes(int gpus) {
    long free = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
      try (CudaDevice device = new CudaDevice(CudaLibrary.api(), gpu)) {
        free += DriverAccess.gpu(device).api().memoryInfo()[0];
      }
    }
    return free;
  }
}
