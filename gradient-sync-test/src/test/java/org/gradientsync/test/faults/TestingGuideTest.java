package org.gradientsync.test.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntConsumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Compiles and runs the code of docs/testing-your-training.md. */
class TestingGuideTest {
  private static final String PAGE = "../docs/testing-your-training.md";
  private static final String THIS =
      "src/test/java/org/gradientsync/test/faults/TestingGuideTest.java";

  private static void train(GradientSync sync, int steps, IntConsumer checkpoint) {
    try (DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 100)) {
      for (int step = 1; step <= steps; step++) {
        sync.average(gradient);
        if (sync.rank() == 0) {
          checkpoint.accept(step);
        }
      }
    }
  }

  // What the page shows:

  @RegisterExtension final Faults faults = new Faults();

  @Test
  void aRankThatDiesEndsTheTraining() {
    faults.onRank(1).atCall(3).die();
    List<Integer> checkpoints = new CopyOnWriteArrayList<>();
    assertThrows(
        GradientSyncException.class,
        () -> LocalRanks.run(2, faults::install, sync -> train(sync, 5, checkpoints::add)));
    assertEquals(List.of(1, 2), checkpoints); // those of the steps before
  }

  @Test
  void everyBlockOfThePageIsHere() throws IOException {
    String here = Files.readString(Path.of(THIS)).replaceAll("\\s", "");
    String[] parts = Files.readString(Path.of(PAGE)).split("```java\n");
    assertTrue(parts.length > 1, "there is no code");
    for (int i = 1; i < parts.length; i++) {
      String block = parts[i].substring(0, parts[i].indexOf("```"));
      assertTrue(here.contains(block.replaceAll("\\s", "")), block);
    }
  }
}
