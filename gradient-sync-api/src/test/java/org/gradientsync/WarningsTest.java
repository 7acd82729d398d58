package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.gradientsync.contract.Logged;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.local.LocalRanks.RankTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What works, and is not what anybody wants. */
@Timeout(60)
class WarningsTest {
  /** Another one in each run: the process is told once. */
  private static final String MISTYPED = "gradientsync.timout" + System.nanoTime();

  private static final List<Parameter> MODEL = List.of(new Parameter("w", DataType.FLOAT32, 5));

  @AfterEach
  void clear() {
    System.clearProperty("gradientsync.finite");
    System.clearProperty(MISTYPED);
  }

  /** The only warning among the lines. */
  private static String only(List<String> lines) {
    List<String> warnings = lines.stream().filter(line -> line.contains(" WARN ")).toList();
    assertEquals(1, warnings.size(), warnings::toString);
    return warnings.get(0);
  }

  /** The only warning of a run. */
  private static String warningOf(int ranks, RankTask task) {
    return only(Logged.lines(() -> LocalRanks.run(ranks, task)));
  }

  private static void assertContains(String text, String... parts) {
    for (String part : parts) {
      assertTrue(text.contains(part), text);
    }
  }

  @Test
  void aSettingThatNobodyReads() {
    System.setProperty(MISTYPED, "5");
    System.setProperty("gradientsync.finite", "false");
    String warning =
        only(
            Logged.lines(
                () -> {
                  LocalRanks.run(3, sync -> sync.barrier());
                  GradientSync.create().close();
                }));
    assertContains(warning, MISTYPED + "=5", "rank=", ", timeout, ", "finite");
  }

  @Test
  void aSettingOfTheBuildersThatNobodyReads() {
    String name = "wier" + System.nanoTime();
    String warning =
        only(Logged.lines(() -> GradientSync.builder().set(name, "float16").create().close()));
    assertContains(warning, "gradientsync." + name + "=float16", "rank=0", "wire");
  }

  @Test
  void aSyncOfAThreadThatIsNoRanks() {
    String warning =
        warningOf(
            2,
            sync -> {
              if (sync.rank() == 1) {
                Thread child = new Thread(() -> GradientSync.create().close(), "kid");
                child.start();
                child.join();
              }
            });
    assertContains(warning, "\"kid\"", "averages with nobody");
    assertEquals(
        0,
        Logged.lines(() -> GradientSync.create().close()).stream()
            .filter(line -> line.contains(" WARN "))
            .count()); // after the run
  }

  @Test
  void aRankThatFailsWhileAnotherComputes() {
    List<String> lines;
    try (Logged logged = new Logged()) {
      assertThrows(
          GradientSyncException.class,
          () ->
              LocalRanks.run(
                  2,
                  sync -> {
                    if (sync.rank() == 1) {
                      throw new ArithmeticException("mine");
                    }
                    while (!logged.text().contains("mine")) {
                      Thread.onSpinWait(); // whatever interrupts it
                    }
                  }));
      lines = logged.text().lines().toList();
    }
    String warning = only(lines);
    assertContains(warning, "rank 1 has failed", "[rank-0]", "java.lang.ArithmeticException: mine");
  }

  @Test
  void noSyncThatNobodyHasClosed() {
    String warning =
        warningOf(
            1,
            sync -> {
              GradientBuckets buckets = GradientBuckets.builder(sync, MODEL).build();
              buckets.noSync().close();
              buckets.noSync(); // not closed
              buckets.close();
              buckets.close();
            });
    assertContains(warning, "rank 0: buckets are closed within noSync()");
  }
}
