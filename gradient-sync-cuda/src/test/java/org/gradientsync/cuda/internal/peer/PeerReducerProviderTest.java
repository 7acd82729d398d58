package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.GradientSyncException;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.driver.DriverAccess;
import org.gradientsync.cuda.internal.peer.PeerRanks.Rank;
import org.gradientsync.cuda.internal.staged.HostStagedReducerProvider;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests where {@code peer} is available, and that a failed creation leaks nothing. */
@Timeout(60)
class PeerReducerProviderTest {
  private final PeerReducerProvider provider = new PeerReducerProvider();

  @Test
  void isFoundByItsName() {
    assertEquals("peer", provider.name());
    assertTrue(provider.priority() > new HostStagedReducerProvider().priority());
    assertTrue(
        ServiceLoader.load(ReducerProvider.class).stream()
            .anyMatch(p -> p.type() == PeerReducerProvider.class));
  }

  @Test
  void gradientsInHostMemoryAreNotForIt() {
    PeerRanks.run(
        2,
        rank -> {
          try (HostDevice host = new HostDevice()) {
            Availability answer =
                provider.availability(
                    new SyncContext(
                        rank.group(),
                        new GroupCommunicator(rank.group()),
                        host,
                        new Settings(Map.of()),
                        new OwnParts()));
            assertFalse(answer.usable());
            assertEquals("the gradients are not in GPU memory: device=host", answer.reason());
          }
          assertTrue(provider.availability(rank.context()).usable());
        });
  }

  @Test
  void thereIsALargestNumberOfRanks() {
    PeerRanks.run(16, rank -> assertTrue(provider.availability(rank.context()).usable()));
    PeerRanks.run(
        17,
        rank -> {
          Availability answer = provider.availability(rank.context());
          assertFalse(answer.usable());
          assertEquals("too many ranks: ranks=17, most=16", answer.reason());
        });
  }

  @ParameterizedTest
  @ValueSource(strings = {"dev.peer.algorithm", "dev.peer.tuning"})
  void settingsThatDifferAreRefusedOnAllRanks(String setting) {
    PeerRanks.run(
        3,
        rank -> {
          DriverAccess.gpu(rank.device())
              .kernels()
              .reduce(); // which warms up streams of shared GPUs
          Map<String, Integer> before = rank.gpu().holds();
          boolean algorithm = setting.equals("dev.peer.algorithm");
          String value =
              rank.rank() == 1 ? algorithm ? "stream" : "on" : algorithm ? "two_shot" : "off";
          GradientSyncException e =
              assertThrows(
                  GradientSyncException.class, () -> provider.create(rank.context(setting, value)));
          assertTrue(e.getMessage().startsWith("the ranks' settings differ"), e.getMessage());
          nothingIsLeft(rank, before);
        });
  }

  @ParameterizedTest
  @CsvSource({"100, false, compute_90.ptx", "121, true, compute_90.ptx"})
  void loadsTheKernelsThatTheGpuRuns(int capability, boolean checkFinite, String image) {
    PeerRanks.run(
        2,
        rank -> {
          CudaApi api = rank.gpu().api;
          when(api.capability(anyInt())).thenReturn(capability);
          SyncContext context =
              rank.context(
                  "dev.peer.tuning",
                  "off",
                  "wire",
                  "bfloat16",
                  "finite",
                  Boolean.toString(checkFinite));
          try (Reducer reducer = provider.create(context);
              CudaBuffer gradients = rank.device().allocate(DataType.FLOAT32, 1 << 10)) {
            assertTrue(reducer.compresses());
            reducer.prepare(CollectiveCall.allReduce(gradients, ReduceOp.AVERAGE));
            reducer.run(CollectiveCall.allReduce(gradients, ReduceOp.SUM));
          }
          String module = "peer_FLOAT32_BFLOAT16" + (checkFinite ? "_check_finite." : ".");
          verify(api).loadImage(eq(module + image), any());
        });
  }

  private static void spoil(CudaApi api, String call) {
    DeviceException e = new DeviceException(call + " failed: CUDA_ERROR_X (999)", 999);
    switch (call) {
      case "allocate" -> doThrow(e).when(api).allocate(new PeerLayout(2).bytes());
      case "pageLock" -> doThrow(e).when(api).pageLock(any());
      case "createStream" -> doThrow(e).when(api).createStream();
      case "createEvent" -> doThrow(e).when(api).createEvent(anyBoolean());
      case "loadImage" -> doThrow(e).when(api).loadImage(any(), any());
      case "function" -> doThrow(e).when(api).function(any(), any());
      default -> throw new IllegalArgumentException(call);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"allocate", "pageLock", "createStream", "createEvent", "loadImage", "function"})
  void whatFailsOnOneRankIsUnavailableOnAllAndLeavesNothing(String call) {
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          if (rank.rank() == 1) {
            spoil(rank.gpu().api, call);
          }
          UnavailableException e =
              assertThrows(
                  UnavailableException.class,
                  () -> provider.create(rank.context("dev.peer.tuning", "off")));
          assertEquals(call + " failed: CUDA_ERROR_X (999) (rank 1)", e.getMessage());
          nothingIsLeft(rank, before);
        });
  }

  private static void nothingIsLeft(Rank rank, Map<String, Integer> before) {
    Agreement.requireAll(new GroupCommunicator(rank.group()), "");
    DeferredFrees.of(rank.gpu().api, DriverAccess.gpu(rank.device()).context()).free();
    assertEquals(before, rank.gpu().holds());
    int turn = rank.rank() / PeerRanks.GPUS;
    try (PeerBudget.Share share = PeerBudget.take(rank.device().ordinal(), turn)) {
      assertEquals(0, share.place(), "a share of the GPU was not given back");
    }
  }

  @ParameterizedTest
  @CsvSource({"dev.peer.algorithm,none_shot", "dev.peer.tuning,never", "dev.peer.sharing,true"})
  void aSettingThatDoesNotExistLeavesNothing(String setting, String value) {
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          IllegalArgumentException e =
              assertThrows(
                  IllegalArgumentException.class,
                  () -> provider.create(rank.context(setting, value)));
          assertTrue(
              e.getMessage().contains("gradientsync." + setting + "=" + value), e::getMessage);
          nothingIsLeft(rank, before);
        });
  }

  @Test
  void closingGivesEverythingBack() {
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          Reducer reducer = provider.create(rank.context("dev.peer.algorithm", "stream"));
          try (CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 1000)) {
            reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
            assertTrue(rank.gpu().allocatedBytes() > new PeerLayout(2).bytes());
            reducer.close();
          }
          nothingIsLeft(rank, before);
        });
  }

  @Test
  void oneRankNeedsNoOther() {
    PeerRanks.run(
        1,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          Reducer reducer = provider.create(rank.context());
          CudaBuffer buffer = rank.device().allocate(DataType.FLOAT32, 1000);
          reducer.prepare(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          reducer.run(CollectiveCall.allReduce(buffer, ReduceOp.AVERAGE));
          reducer.run(CollectiveCall.broadcast(buffer, 0));
          assertTrue(rank.gpu().launched.isEmpty());
          buffer.close();
          reducer.close();
          nothingIsLeft(rank, before);
        });
  }

  @Test
  void whatIsMeasuredIsKeptForTheNextTime(@TempDir Path folder) {
    Path file = folder.resolve("peer-tuning.properties");
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          when(rank.gpu().api.driverVersion()).thenReturn(12060);
          doReturn(1f).when(rank.gpu().api).milliseconds(any(), any());
          provider.create(rank.context("dev.cache", folder.toString())).close();
          int measured = Collections.frequency(rank.gpu().launched, "graph");
          assertTrue(measured > 0);
          nothingIsLeft(rank, before);
          if (rank.rank() == 0) {
            // All algorithms are equally fast, so the first one is used up to its largest size.
            PeerLayout layout = new PeerLayout(2);
            long most = layout.mostBytes(PeerAlgorithm.ONE_SHOT);
            String text = Files.readString(file);
            assertTrue(text.contains("fake.12060.2-ranks.share-0="), text);
            PeerTuningCache cache =
                new PeerTuningCache(
                    new Settings(Map.of("dev.cache", folder.toString())), "fake", 12060, 2, 0);
            long[] sizes = cache.read(layout);
            assertEquals(2 << 20, sizes[0] * 4 / 5);
            assertTrue(sizes[0] * 4 / 5 <= most);
            assertEquals(8 << 20, sizes[1]);
          }
          provider.create(rank.context("dev.cache", folder.toString())).close();
          assertEquals(
              measured, Collections.frequency(rank.gpu().launched, "graph"), "measured again");
          nothingIsLeft(rank, before);
        });
  }

  @Test
  void whatIsMeasuredCanBeReadWhereTwoShotIsNeverTheFastest(@TempDir Path folder) {
    PeerRanks.run(
        2,
        rank -> {
          // One shot wins at six sizes, with two times five rounds each. Then two_shot loses.
          AtomicInteger calls = new AtomicInteger();
          doAnswer(c -> calls.getAndIncrement() / 5 == 12 ? 2f : 1f)
              .when(rank.gpu().api)
              .milliseconds(any(), any());
          provider.create(rank.context("dev.cache", folder.toString())).close();
          assertEquals(70, calls.get());
          provider.create(rank.context("dev.cache", folder.toString())).close();
          assertEquals(70, calls.get(), "measured again");
        });
  }

  @Test
  void aFailureWhileMeasuringLeavesNothing() {
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          doThrow(new DeviceException("cuEventElapsedTime failed: CUDA_ERROR_X (999)", 999))
              .when(rank.gpu().api)
              .milliseconds(any(), any());
          assertThrows(
              DeviceException.class,
              () -> provider.create(rank.context("dev.cache", "/proc/nowhere")));
          nothingIsLeft(rank, before);
        });
  }

  @Test
  void scratchMemoryThatCannotBeMappedIsNotMeasured() {
    PeerRanks.run(
        2,
        rank -> {
          Map<String, Integer> before = rank.gpu().holds();
          // The first export is the mailbox, the second the scratch memory.
          when(rank.gpu().api.exportMemory(anyLong()))
              .thenReturn(new byte[CudaApi.HANDLE_BYTES])
              .thenThrow(new DeviceException("cuIpcGetMemHandle failed: X (1)", 1));
          Reducer reducer = provider.create(rank.context("dev.cache", "/proc/nowhere"));
          assertTrue(rank.gpu().launched.stream().noneMatch("graph"::equals));
          reducer.close();
          nothingIsLeft(rank, before);
        });
  }
}
