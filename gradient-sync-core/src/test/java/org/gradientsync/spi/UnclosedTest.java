package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Logged;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class UnclosedTest {
  /** Other tests may leave more garbage than a process warns of. */
  @BeforeEach
  void allowAllWarnings() {
    Unclosed.allowWarnings(Integer.MAX_VALUE);
  }

  /** They may count what is logged. */
  @AfterAll
  static void keepItFromOtherTests() {
    Unclosed.allowWarnings(0);
  }

  @Test
  void warningsStopAtTheLimit() {
    try (Logged logged = new Logged();
        GradientSync sync = GradientSync.create()) {
      sync.allocate(DataType.FLOAT32, 4800);
      collectUntil(() -> logged.text().contains("FLOAT32[4800]")); // with what others have left
      collectOnce();
      Unclosed.allowWarnings(2);
      long before = warnings(logged);
      for (int i = 1; i <= 3; i++) {
        Reference<?> lost = new WeakReference<>(sync.allocate(DataType.FLOAT32, 4800 + i));
        collectUntil(() -> lost.refersTo(null));
      }
      collectUntil(() -> warnings(logged) >= before + 2);
      collectOnce();
      assertEquals(before + 2, warnings(logged), logged::text);
    }
  }

  private static long warnings(Logged logged) {
    return logged.text().lines().filter(line -> line.contains("never closed")).count();
  }

  @Test
  void aBufferThatIsNeverClosedIsWarnedOfOnce() {
    try (Logged logged = new Logged();
        GradientSync sync = GradientSync.create()) {
      for (int i = 0; i < 3; i++) {
        sync.allocate(DataType.FLOAT32, 4711).named("lost");
      }
      sync.allocate(DataType.FLOAT32, 4712).close();
      String warning = "never closed: buffer host FLOAT32[4711] \"lost\"; close it";
      collectUntil(() -> logged.text().contains(warning));
      collectOnce();
      assertEquals(1, logged.text().lines().filter(l -> l.contains("4711")).count());
      assertTrue(!logged.text().contains("4712"), logged.text());
    }
  }

  @Test
  void aBufferOfTheDeviceThatIsNeverClosedIsWarnedOfOnce() {
    try (Logged logged = new Logged();
        GradientSync sync = GradientSync.create()) {
      sync.device().allocate(DataType.FLOAT32, 4713);
      sync.device().allocate(DataType.FLOAT32, 4714).close();
      String warning = "never closed: buffer host FLOAT32[4713]; close it";
      collectUntil(() -> logged.text().contains(warning));
      collectOnce();
      assertEquals(1, logged.text().lines().filter(l -> l.contains("4713")).count());
      assertTrue(!logged.text().contains("4714"), logged.text());
    }
  }

  @Test
  void whatTheLibraryKeepsIsNotWarnedOf() {
    try (Logged logged = new Logged()) {
      LocalRanks.run(2, builder -> builder.wire(DataType.BFLOAT16), UnclosedTest::useAllKinds);
      makeTheLibraryKeepBuffers();
      collectUntil(() -> logged.text().contains("never closed: sync of rank 0 of 1; close it"));
      collectOnce();
      assertTrue(!logged.text().contains("buffer host FLOAT32[47"), logged.text());
    }
  }

  private static void makeTheLibraryKeepBuffers() {
    GradientSync sync = GradientSync.create();
    useAllKinds(sync);
    buckets(sync);
  }

  /** All buffers here and in the library have 47.. elements, which no other test has. */
  private static void useAllKinds(GradientSync sync) {
    sync.average(new float[4720]);
    try (GradientBuckets buckets = buckets(sync);
        DeviceBuffer one = sync.allocate(DataType.FLOAT32, 4730);
        DeviceBuffer other = sync.allocate(DataType.FLOAT32, 5)) {
      buckets.ready(0);
      buckets.finish();
      sync.grouped(
          () -> {
            sync.average(one);
            sync.average(other);
          });
    }
  }

  private static GradientBuckets buckets(GradientSync sync) {
    List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 4736));
    return GradientBuckets.builder(sync, model).overlap(false).build();
  }

  @Test
  void aSyncThatIsNeverClosedIsWarnedOf() {
    try (Logged logged = new Logged()) {
      useWithoutClosing();
      collectUntil(() -> logged.text().contains("never closed: sync of rank 0 of 1; close it"));
    }
  }

  private static void useWithoutClosing() {
    GradientSync sync = GradientSync.create();
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 10)) {
      sync.average(buffer);
    }
  }

  /** Fails by the time-out of the test. */
  private static void collectUntil(BooleanSupplier done) {
    while (!done.getAsBoolean()) {
      collectOnce();
    }
  }

  private static void collectOnce() {
    System.gc();
    try {
      Thread.sleep(5);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
