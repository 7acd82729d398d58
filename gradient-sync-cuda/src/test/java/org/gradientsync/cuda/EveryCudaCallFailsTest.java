package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Parameter;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaKernel;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.cuda.compute.TestBlas;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.DeferredFrees;
import org.gradientsync.cuda.internal.peer.ProcessMemory;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Makes each driver call of a piece of work fail, on simulated GPUs. Each failure must cause a
 * clear exception, leak nothing, and let no rank wait forever. Of calls from the same source lines,
 * only the first and the last one fail, on the first rank that makes them. With {@code
 * -Dfaults.every=true} every call on every rank fails, which takes several times as long. {@link
 * EveryPeerCallFailsTest} has the work of the reducer {@code peer}, so that both run side by side.
 */
class EveryCudaCallFailsTest {
  private static final Duration HANGS = Duration.ofSeconds(60);
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private static PrintStream before;

  /** The simulated GPU of one rank. */
  private record Simulated(SimulatedGpu gpu, FaultyCudaApi faulty) {
    Simulated() {
      this(SimulatedGpu.unopened());
      gpu.otherKernels((arguments, blocks) -> {});
    }

    private Simulated(SimulatedGpu gpu) {
      this(gpu, new FaultyCudaApi(gpu.api()));
    }

    CudaDevice open() {
      return new CudaDevice(faulty.api(), 0);
    }
  }

  /** Work on one GPU. */
  private interface OnGpu {
    void run(Simulated simulated) throws Exception;
  }

  /** Work of one rank. */
  private interface OnRank {
    void run(GradientSync sync) throws Exception;
  }

  /**
   * Work on one rank or several.
   *
   * @param forgiven methods, as Class.method, that only log a failure, or handle it without an
   *     exception
   */
  private record Scenario(int ranks, Set<String> forgiven, Work work) {
    boolean alone() {
      return ranks == 1 && forgiven.isEmpty();
    }
  }

  /** Runs the work, and stores the exception of each rank. */
  private interface Work {
    void run(Simulated[] ranks, Throwable[] outcomes);
  }

  private static final Map<String, Scenario> SCENARIOS = new LinkedHashMap<>();

  static {
    on("device", EveryCudaCallFailsTest::openAndClose);
    on("memory", EveryCudaCallFailsTest::memory);
    on("streams", EveryCudaCallFailsTest::streams);
    on("graphs", EveryCudaCallFailsTest::graphs);
    on("kernels", EveryCudaCallFailsTest::kernels);
    on("blas", EveryCudaCallFailsTest::blas);
    on("products", EveryCudaCallFailsTest::products);
    on(
        "observed",
        1,
        "host-staged",
        Set.of("GradientSync.report"),
        EveryCudaCallFailsTest::observed);
    on("host-staged alone", 1, "host-staged", Set.of(), EveryCudaCallFailsTest::reduces);
    on("host-staged", 2, "host-staged", Set.of(), EveryCudaCallFailsTest::reduces);
    on("host-staged groups", 2, "host-staged", Set.of(), EveryCudaCallFailsTest::groups);
    on("host-staged buckets", 2, "host-staged", Set.of(), EveryCudaCallFailsTest::buckets);
    Set<String> peer = Set.of("PeerMemory.offer", "PeerMemory.map", "DeferredFrees.free");
    on("peer alone", 1, "peer", peer, EveryCudaCallFailsTest::reduces);
    on("peer", 2, "peer", peer, EveryCudaCallFailsTest::reduces);
    on("peer groups", 2, "peer", peer, EveryCudaCallFailsTest::groups);
    on("peer large groups", 2, "peer", peer, EveryCudaCallFailsTest::largeGroups);
    on("peer buckets", 2, "peer", peer, EveryCudaCallFailsTest::buckets);
    on("peer graphs", 2, "peer", peer, EveryCudaCallFailsTest::replays);
    SCENARIOS.put(
        "peer memory of processes",
        new Scenario(
            2,
            Set.of("PeerMemory.offer", "PeerMemory.map"),
            (simulated, outcomes) ->
                onRanks(2, outcomes, sync -> shares(sync, simulated[sync.rank()]))));
  }

  private static void on(String name, OnGpu work) {
    SCENARIOS.put(
        name,
        new Scenario(
            1,
            Set.of(),
            (ranks, outcomes) -> {
              try {
                work.run(ranks[0]);
              } catch (Throwable t) {
                outcomes[0] = t;
              }
            }));
  }

  private static void on(
      String name, int ranks, String reducer, Set<String> forgiven, OnRank work) {
    SCENARIOS.put(
        name,
        new Scenario(
            ranks,
            forgiven,
            (simulated, outcomes) -> {
              SimulatedDeviceProvider.use(rank -> simulated[rank].faulty().api());
              onRanks(
                  ranks,
                  outcomes,
                  outer -> {
                    try (GradientSync sync =
                        GradientSync.builder()
                            .device(SimulatedDeviceProvider.KIND)
                            .reducer(reducer)
                            .set("dev.peer.tuning", "off")
                            .timeout(TIMEOUT)
                            .create()) {
                      work.run(sync);
                    }
                  });
            }));
  }

  /** Stores the first exception of each rank, and ignores what LocalRanks makes of them. */
  private static void onRanks(int ranks, Throwable[] outcomes, OnRank work) {
    try {
      LocalRanks.run(
          ranks,
          b -> b.device("host").reducer("local"),
          outer -> {
            try {
              work.run(outer);
            } catch (Throwable t) {
              outcomes[outer.rank()] = t;
              throw t; // ends the waits of the other rank
            }
          });
    } catch (GradientSyncException e) {
      assertTrue(Arrays.stream(outcomes).anyMatch(o -> o != null), e::toString);
    }
  }

  private static void openAndClose(Simulated simulated) {
    simulated.open().close();
  }

  private static void memory(Simulated simulated) {
    try (CudaDevice device = simulated.open();
        CudaBuffer buffer = device.allocate(DataType.FLOAT32, 1_500_000); // three pieces
        CudaBuffer other = device.allocate(DataType.FLOAT32, 1_500_000);
        CudaBuffer half = device.allocate(DataType.BFLOAT16, 1_500_000)) {
      device.allocate(DataType.INT64, 7); // freed when the device is closed
      float[] values = new float[1_500_000];
      buffer.copyFrom(values);
      try (DeviceBuffer part = buffer.slice(3, 4)) {
        part.fillZero();
      }
      device.reduce(new DeviceBuffer[] {buffer, other}, other, ReduceOp.AVERAGE);
      device.convert(buffer, half);
      device.await(half);
      other.copyTo(values);
    }
  }

  private static void streams(Simulated simulated) {
    try (CudaDevice device = simulated.open();
        CudaStream stream = device.createStream();
        CudaStream urgent = device.createStream(true);
        CudaEvent start = device.createEvent(true);
        CudaEvent end = device.createEvent(true);
        CudaBuffer buffer = device.allocate(DataType.INT32, 10, stream)) {
      start.record(stream);
      buffer.fillZero();
      urgent.waitFor(start);
      end.record(urgent);
      end.await();
      assertTrue(start.isDone());
      start.millisecondsTo(end);
      stream.await();
    }
  }

  private static void graphs(Simulated simulated) {
    try (CudaDevice device = simulated.open();
        CudaStream stream = device.createStream();
        CudaBuffer buffer = device.allocate(DataType.INT32, 10, stream)) {
      stream.beginCapture();
      buffer.fillZero();
      try (CudaGraph graph = stream.endCapture()) {
        graph.launch(stream);
        graph.launch(device.stream());
        stream.await();
      }
    }
  }

  private static void kernels(Simulated simulated) throws IOException {
    try (InputStream in = EveryCudaCallFailsTest.class.getResourceAsStream("compute/user.ptx");
        CudaDevice device = simulated.open();
        CudaModule module =
            CudaModule.load(device, new String(in.readAllBytes(), StandardCharsets.UTF_8));
        CudaBuffer buffer = device.allocate(DataType.INT32, 10)) {
      CudaKernel kernel = module.kernel("slow");
      kernel.launch(device.stream(), Grid.of(1, 128), buffer, 10, 0L);
      kernel.prepare(Grid.of(1, 128), buffer, 10, 0L).launch(device.stream());
      device.stream().await();
    }
  }

  private static void blas(Simulated simulated) {
    try (CudaDevice device = simulated.open();
        CudaBlas blas = TestBlas.on(device, simulated.faulty().blas(simulated.gpu().blasApi()));
        CudaStream stream = device.createStream();
        CudaBuffer workspace = device.allocate(DataType.INT32, 8192, stream);
        CudaBuffer a = device.allocate(DataType.FLOAT32, 4, stream);
        CudaBuffer b = device.allocate(DataType.FLOAT32, 4, stream)) {
      blas.setMathMode(CudaBlas.MathMode.TF32);
      blas.setWorkspace(stream, workspace);
      blas.multiply(stream, a, a, b, 2, 2, 2);
      blas.scale(stream, 2, a);
      blas.addScaled(device.stream(), 2, a, b);
      stream.await();
    }
  }

  private static void products(Simulated simulated) {
    try (CudaDevice device = simulated.open();
        CudaStream stream = device.createStream();
        CudaBuffer a = device.allocate(DataType.FLOAT32, 4, stream);
        CudaBuffer b = device.allocate(DataType.FLOAT32, 4, stream)) {
      device.gpu().blas().use(() -> simulated.faulty().blas(simulated.gpu().blasApi()));
      device.products(a);
      device.multiply(1, a, false, a, false, 0, b, 2, 2, 2);
      device.addScaled(2, a, b);
      stream.await();
    }
  }

  private static void observed(GradientSync sync) {
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
      sync.observe(synchronization -> {});
      sync.average(buffer);
      sync.average(buffer);
    }
  }

  private static void reduces(GradientSync sync) {
    float[] values = new float[200_000];
    try (DeviceBuffer small = sync.allocate(DataType.FLOAT32, 10);
        DeviceBuffer large = sync.allocate(DataType.FLOAT32, values.length)) {
      together(sync, () -> sync.broadcast(large, 0));
      together(sync, () -> sync.average(small));
      together(sync, () -> sync.average(large));
      together(sync, () -> sync.average(large));
      large.copyTo(values);
    }
  }

  /** Reduced as one, which a failure to map may turn into copies. */
  private static void largeGroups(GradientSync sync) {
    try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 1 << 20);
        DeviceBuffer b = sync.allocate(DataType.FLOAT32, 2 << 20)) {
      for (int call = 0; call < 2; call++) {
        sync.grouped(
            () -> {
              sync.average(a);
              sync.average(b);
            });
      }
    }
  }

  private static void groups(GradientSync sync) {
    try (DeviceBuffer a = sync.allocate(DataType.FLOAT32, 10);
        DeviceBuffer b = sync.allocate(DataType.FLOAT32, 11)) {
      Runnable calls =
          () ->
              sync.grouped(
                  () -> {
                    sync.average(a);
                    sync.average(b);
                  });
      together(sync, calls);
      together(sync, calls);
      b.copyTo(new float[11]);
    }
  }

  private static void replays(GradientSync sync) {
    try (CudaBuffer buffer = (CudaBuffer) sync.allocate(DataType.FLOAT32, 10);
        CudaStream other = buffer.stream().device().createStream()) {
      together(sync, () -> sync.register(buffer));
      buffer.stream().beginCapture();
      sync.average(buffer);
      sync.allReduce(buffer, ReduceOp.SUM); // prepares the buffer: its first call
      try (CudaGraph graph = buffer.stream().endCapture()) {
        together(sync, () -> graph.launch(buffer.stream()));
        together(sync, () -> graph.launch(other));
        buffer.copyTo(new float[10]);
      }
    }
  }

  private static void shares(GradientSync sync, Simulated simulated) {
    ProcessGroup world = LocalWorld.current().orElseThrow();
    try (ProcessGroup group = world.split(0, sync.rank(), world.timeouts());
        CudaDevice device = new CudaDevice(simulated.faulty().api(), sync.rank())) {
      ProcessMemory.share(group, device);
    }
  }

  private static void buckets(GradientSync sync) {
    List<Parameter> parameters =
        List.of(new Parameter("a", DataType.FLOAT32, 10), new Parameter("b", DataType.FLOAT32, 10));
    try (GradientBuckets buckets =
        GradientBuckets.builder(sync, parameters)
            .firstBucketBytes(1)
            .bucketBytes(1)
            .unevenSteps()
            .build()) {
      buckets.ready(1);
      buckets.ready(0);
      buckets.finish();
      buckets.join(() -> {});
    }
  }

  /** Makes a call on all ranks. If it fails halfway, the sync must be broken. */
  private static void together(GradientSync sync, Runnable call) {
    try {
      call.run();
    } catch (UnavailableException e) { // all ranks agreed on it, so the sync still works
      assertTrue(e.getMessage().contains("(rank "), () -> "no rank in: " + e);
      throw e;
    } catch (GradientSyncException e) {
      assertTrue(e.getMessage().contains("rank=" + sync.rank()), () -> "no rank in: " + e);
      assertThrows(RankLostException.class, call::run);
      throw e;
    }
  }

  static Stream<Arguments> cases() {
    return cases(name -> !name.startsWith("peer"));
  }

  static Stream<Arguments> cases(Predicate<String> some) {
    return SCENARIOS.keySet().stream()
        .filter(some)
        .flatMap(
            name ->
                Stream.of(
                        FaultyCudaApi.OUT_OF_MEMORY,
                        FaultyCudaApi.LAUNCH_FAILED,
                        FaultyCudaApi.DEVICE_UNAVAILABLE,
                        FaultyCudaApi.UNKNOWN)
                    // Several ranks only notice whether later calls fail, too, so they need one
                    // code: the second, after which all calls fail.
                    .skip(SCENARIOS.get(name).alone() ? 0 : 1)
                    .limit(SCENARIOS.get(name).alone() ? 4 : 1)
                    .map(code -> Arguments.of(name, code)));
  }

  /** Thousands of syncs would fill the log. */
  @BeforeAll
  static void beQuiet() {
    before = System.err;
    System.setErr(new PrintStream(OutputStream.nullOutputStream()));
  }

  @AfterAll
  static void restore() {
    System.setErr(before);
    SimulatedDeviceProvider.use(null);
  }

  @ParameterizedTest
  @MethodSource("cases")
  void failureIsReportedAndLeaksNothing(String name, int code) {
    Scenario scenario = SCENARIOS.get(name);
    List<List<Integer>> calls = new ArrayList<>();
    assertEquals(List.of(), outcome(scenario, -1, 0, code, calls));
    List<String> problems = new ArrayList<>();
    for (int rank = 0; rank < scenario.ranks(); rank++) {
      for (int call : calls.get(rank)) {
        problems.addAll(outcome(scenario, rank, call, code, new ArrayList<>()));
      }
    }
    assertEquals(
        0, problems.size(), () -> problems.size() + " problems:\n" + String.join("\n", problems));
  }

  /** Makes one call of one rank fail, and returns the problems found. */
  private static List<String> outcome(
      Scenario scenario, int failing, int call, int code, List<List<Integer>> calls) {
    Simulated[] simulated = new Simulated[scenario.ranks()];
    Arrays.setAll(simulated, rank -> new Simulated());
    Throwable[] outcomes = new Throwable[scenario.ranks()];
    if (failing >= 0) {
      simulated[failing].faulty().failAt(call, code);
    } else {
      Arrays.stream(simulated).forEach(p -> p.faulty().trace());
    }
    List<String> problems = new ArrayList<>();
    try {
      assertTimeoutPreemptively(HANGS, () -> scenario.work().run(simulated, outcomes));
    } catch (AssertionError e) {
      problems.add(e.getMessage());
    }
    for (int rank = 0; rank < simulated.length; rank++) {
      if (failing < 0) {
        calls.add(callsToFail(simulated, rank));
      }
      CudaApi api = simulated[rank].faulty().api();
      for (int gpu = 0; gpu < 2; gpu++) {
        DeferredFrees.of(api, simulated[rank].gpu().context(gpu)).free();
      }
      Map<String, Integer> held = simulated[rank].gpu().holds();
      if (!held.isEmpty()) {
        problems.add("rank " + rank + " leaves " + held + trace(outcomes[rank]));
      }
      String failed = simulated[rank].faulty().failed();
      boolean forgiven =
          scenario.forgiven().stream().anyMatch(simulated[rank].faulty()::hasFailedIn);
      if (rank == failing) {
        if (failed == null) {
          problems.add("the call was not reached");
        } else if (outcomes[rank] == null && !forgiven) {
          problems.add("nobody was told");
        }
      }
      if (outcomes[rank] != null
          && !isClear(outcomes[rank], rank == failing && !forgiven ? code : 0)) {
        problems.add("rank " + rank + " gets " + trace(outcomes[rank]));
      }
    }
    String at =
        failing < 0
            ? "nothing fails: "
            : "rank "
                + failing
                + ", call "
                + call
                + " ("
                + simulated[failing].faulty().failed()
                + "): ";
    return problems.stream().map(at::concat).toList();
  }

  /**
   * Returns the calls of a rank that have to fail: those from lines where no lower rank has made
   * one.
   */
  private static List<Integer> callsToFail(Simulated[] simulated, int rank) {
    FaultyCudaApi own = simulated[rank].faulty();
    if (Boolean.getBoolean("faults.every")) {
      return own.callsToFail();
    }
    Set<List<String>> before = new HashSet<>();
    for (int other = 0; other < rank; other++) {
      FaultyCudaApi faulty = simulated[other].faulty();
      faulty.callsToFail().forEach(call -> before.add(faulty.stackOf(call)));
    }
    return own.callsToFail().stream().filter(call -> !before.contains(own.stackOf(call))).toList();
  }

  private static boolean isClear(Throwable t, int code) {
    return t instanceof GradientSyncException
        && (code == 0 || t.getMessage().contains(FaultyCudaApi.text(code)));
  }

  private static String trace(Throwable t) {
    if (t == null) {
      return "";
    }
    StringBuilder text = new StringBuilder(" with ").append(t);
    Arrays.stream(t.getStackTrace())
        .filter(f -> f.getClassName().startsWith("org.gradientsync"))
        .limit(6)
        .forEach(f -> text.append("\n      at ").append(f));
    return text.toString();
  }
}
