package org.gradientsync.elastic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** Compiles and runs the code of docs/when-a-rank-is-lost.md. */
class ElasticGuideTest {
  private static final String PAGE = "../docs/when-a-rank-is-lost.md";
  private static final String THIS = "src/test/java/org/gradientsync/elastic/ElasticGuideTest.java";

  // What the page shows:

  static GradientSync averageOrGoOn(GradientSync sync, DeviceBuffer gradient) {
    try {
      sync.average(gradient);
      return sync;
    } catch (RankLostException e) {
      return sync.survivors(); // a sync of the others; the gradient is to be computed again
    }
  }

  /** Fits y = w * x on all ranks. */
  static final class Line implements ElasticLoop {
    private final DeviceBuffer weight;
    private final DeviceBuffer gradient;
    private GradientSync sync;

    Line(GradientSync first) {
      weight = first.allocate(DataType.FLOAT32, 1);
      gradient = first.allocate(DataType.FLOAT32, 1);
    }

    @Override
    public void begin(GradientSync ranks) {
      sync = ranks; // build GradientBuckets, and load this rank's share of the data
    }

    @Override
    public void compute(long step) { // all calls that need other ranks
      float x = 1 + (step * sync.size() + sync.rank()) % 4;
      gradient.copyFrom(new float[] {2 * x * (weight() * x - 3 * x)});
      sync.average(gradient);
    }

    @Override
    public void update(long step) { // changes the state, without other ranks
      float[] average = new float[1];
      gradient.copyTo(average);
      weight.copyFrom(new float[] {weight() - 0.02f * average[0]});
    }

    @Override
    public void end() {
      // close what begin has made
    }

    @Override
    public List<DeviceBuffer> state() { // what must be the same on all ranks
      return List.of(weight);
    }

    float weight() {
      float[] value = new float[1];
      weight.copyTo(value);
      return value[0];
    }
  }

  static float train(GradientSync sync) {
    Line loop = new Line(sync);
    try (ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
      boolean done = training.run(0, 100); // or this rank has left, and its buffers are closed
      return done ? loop.weight() : Float.NaN;
    }
  }

  @Test
  void theTrainingOfThePageLearns() {
    LocalRanks.run(3, sync -> assertEquals(3, train(sync), 1e-3f));
  }

  @Test
  void theOthersOfThePageGoOn() {
    LocalRanks.run(
        3,
        sync -> {
          if (sync.rank() == 1) {
            return;
          }
          try (DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 5);
              GradientSync next = averageOrGoOn(sync, gradient)) {
            assertEquals(2, next.size());
          }
        });
  }

  @Test
  void everyBlockOfThePageIsHere() throws IOException {
    String here = Files.readString(Path.of(THIS)).replaceAll("\\s", "");
    String[] parts = Files.readString(Path.of(PAGE)).split("```java\n");
    assertTrue(parts.length > 1, "there is no code");
    for (int i = 1; i < parts.length; i++) {
      String block = parts[i].substring(0, parts[i].indexOf("```")).replaceAll("\\s", "");
      String inClass = block.replace("finalclassLine", "staticfinalclassLine");
      assertTrue(here.contains(inClass), parts[i]);
    }
  }
}
