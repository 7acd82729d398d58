package org.gradientsync.examples.spark;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.gradientsync.GradientSync;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * Fits a linear model to rows that Spark has spread over its partitions, in one barrier stage: each
 * task is a rank, and the ranks average their gradients over TCP, without MPI.
 *
 * <p>A barrier stage starts all tasks at once or none. Rank 0 chooses a port on its host, and the
 * others hear of it by {@code allGather}. The driver makes the secret, which travels as a part of
 * the closure.
 */
public final class SparkTraining {
  private static final int SECRET_BYTES = 32;
  private static final float RATE = 0.2f;

  private SparkTraining() {}

  /**
   * One row of data.
   *
   * @param x the features
   * @param y the target
   */
  public record Row(float[] x, float y) implements Serializable {}

  /**
   * Trains on made-up rows.
   *
   * @param args the number of ranks, and of steps
   */
  public static void main(String[] args) {
    int ranks = Integer.parseInt(args[0]);
    SparkConf conf =
        new SparkConf()
            .setAppName("gradient-sync")
            .setIfMissing("spark.master", "local[" + ranks + "]");
    try (JavaSparkContext spark = new JavaSparkContext(conf)) {
      float[] truth = {1, -2, 3};
      JavaRDD<Row> rows = spark.parallelize(rows(truth, 3000), ranks);
      List<float[]> weights = train(rows, truth.length, Integer.parseInt(args[1]));
      System.out.println("weights of rank 0: " + Arrays.toString(weights.get(0)));
    }
  }

  static List<Row> rows(float[] truth, int count) {
    SplittableRandom random = new SplittableRandom(1);
    List<Row> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      float[] x = new float[truth.length];
      float y = 0;
      for (int j = 0; j < x.length; j++) {
        x[j] = (float) random.nextDouble(-1, 1);
        y += truth[j] * x[j];
      }
      rows.add(new Row(x, y));
    }
    return rows;
  }

  /**
   * Trains, with one rank for each partition.
   *
   * @return the weights of each rank, which have the same bits
   */
  static List<float[]> train(JavaRDD<Row> rows, int features, int steps) {
    byte[] random = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(random);
    String secret = HexFormat.of().formatHex(random);
    ClassTag<float[]> type = ClassTag.apply(float[].class);
    Task task =
        own ->
            CollectionConverters.asScala(
                List.of(trainRank(CollectionConverters.asJava(own), features, steps, secret))
                    .iterator());
    // Spark's interface for Java has no barrier stages.
    RDD<float[]> weights = rows.rdd().barrier().mapPartitions(task, false, type);
    return JavaRDD.fromRDD(weights, type).collect();
  }

  /** Goes to the executors. */
  private interface Task
      extends Function1<scala.collection.Iterator<Row>, scala.collection.Iterator<float[]>>,
          Serializable {}

  /** Runs in a task. */
  private static float[] trainRank(Iterator<Row> own, int features, int steps, String secret) {
    List<Row> rows = new ArrayList<>();
    own.forEachRemaining(rows::add);
    try (GradientSync sync = join(BarrierTaskContext.get(), secret)) {
      float[] weights = new float[features];
      float[] sums = new float[features + 1]; // the last one counts rows: partitions differ in size
      for (int step = 0; step < steps; step++) {
        addGradients(rows, weights, sums);
        sync.average(sums);
        for (int j = 0; j < features; j++) {
          weights[j] -= RATE * sums[j] / sums[features];
        }
      }
      return weights;
    }
  }

  /** Joins the job of all tasks of the stage. */
  private static GradientSync join(BarrierTaskContext task, String secret) {
    int rank = task.partitionId();
    String[] ports = task.allGather(rank == 0 ? Integer.toString(freePort()) : "");
    String host = task.getTaskInfos()[0].address().replaceFirst(":\\d+$", "");
    return GradientSync.builder()
        .set("tcp.rank", Integer.toString(rank))
        .set("tcp.size", Integer.toString(ports.length))
        .set("tcp.master", host + ":" + ports[0])
        .set("tcp.secret", secret)
        .create();
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void addGradients(List<Row> rows, float[] weights, float[] sums) {
    Arrays.fill(sums, 0);
    for (Row row : rows) {
      float error = -row.y();
      for (int j = 0; j < weights.length; j++) {
        error += weights[j] * row.x()[j];
      }
      for (int j = 0; j < weights.length; j++) {
        sums[j] += 2 * error * row.x()[j];
      }
      sums[weights.length]++;
    }
  }
}
