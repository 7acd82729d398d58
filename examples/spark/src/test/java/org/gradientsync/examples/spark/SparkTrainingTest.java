package org.gradientsync.examples.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Runs barrier stages in Spark's local mode, in which tasks are threads of one JVM. */
class SparkTrainingTest {
  private static final float[] TRUTH = {1, -2, 3};

  private static JavaSparkContext spark;

  @BeforeAll
  static void start() {
    SparkConf conf =
        new SparkConf()
            .setMaster("local[3]")
            .setAppName("test")
            .set("spark.ui.enabled", "false")
            .set("spark.driver.host", "127.0.0.1")
            .set("spark.driver.bindAddress", "127.0.0.1");
    spark = new JavaSparkContext(conf);
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private static List<float[]> train(int rows, int ranks) {
    return SparkTraining.train(
        spark.parallelize(SparkTraining.rows(TRUTH, rows), ranks), TRUTH.length, 200);
  }

  /** One stage after another, with partitions that differ in size. */
  @Test
  void ranksOfABarrierStageTrainToTheSameWeights() {
    for (int rows : new int[] {100, 101}) {
      List<float[]> weights = train(rows, 3);
      assertEquals(3, weights.size());
      for (float[] each : weights) {
        assertArrayEquals(weights.get(0), each);
        assertArrayEquals(TRUTH, each, 1e-3f);
      }
    }
  }

  @Test
  void aTaskThatFailsFailsTheStageWithItsReason() {
    List<SparkTraining.Row> rows = SparkTraining.rows(TRUTH, 3);
    rows.set(1, new SparkTraining.Row(new float[1], 0)); // too short, on rank 1
    Exception thrown =
        assertThrows(
            Exception.class,
            () -> SparkTraining.train(spark.parallelize(rows, 3), TRUTH.length, 5));
    assertTrue(thrown instanceof SparkException, thrown::toString);
    String text = thrown.getMessage();
    assertTrue(text.contains("ArrayIndexOutOfBounds") || text.contains("has left"), text);
    assertArrayEquals(TRUTH, train(30, 2).get(0), 1e-3f); // and the next stage starts
  }
}
