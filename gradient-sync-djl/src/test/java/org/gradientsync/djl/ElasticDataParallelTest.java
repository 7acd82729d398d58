package org.gradientsync.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.listener.SaveModelTrainingListener;
import ai.djl.training.listener.TrainingListener;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.djl.Training.Outcome;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Trainings that lose ranks, beside those of fewer ranks from the same step on. */
@Timeout(60)
class ElasticDataParallelTest {
  private static final int RANKS = 3;
  private static final int STEPS = 2; // of an epoch
  private static final int EPOCHS = 2;

  /** Of an epoch: its steps, the exchange that ends them, running means, metrics. */
  private static final int OPERATIONS = STEPS + 3;

  private static final int MEANS = STEPS + 1;
  private static final int METRICS = STEPS + 2;

  private final Training training = new Training();
  private final Map<Integer, Failure> failures = new ConcurrentHashMap<>(); // by rank
  private CountDownLatch others; // that have begun the operation in which a rank fails
  private CountDownLatch finished; // that operation, on some rank

  ElasticDataParallelTest() {
    training.epochs = EPOCHS;
    training.block =
        rank -> new SequentialBlock().add(BatchNorm.builder().build()).add(Training.block(rank));
  }

  /** A rank's own failure. */
  private static final class Lost extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  private enum Place {
    BEFORE, // when the others have begun it
    BEFORE_AVERAGE, // after the exchange of the rows
    AFTER, // and the others may have finished it, too, or not
    AFTER_OTHERS, // when some have finished it
    AFTER_OTHERS_NOT_LOST, // goes on, but does not know that it is finished
    AGAIN // when it is repeated
  }

  private record Failure(int operation, Place place) {
    boolean isLoss() {
      return place != Place.AFTER_OTHERS_NOT_LOST;
    }
  }

  /** Fails as planned. */
  private final class FailingCalls extends ElasticCalls {
    private final int rank;
    private final Failure failure; // or null
    private int number;
    private int runs;

    FailingCalls(GradientSync sync) {
      super(sync);
      rank = sync.rank();
      failure = failures.get(rank);
    }

    private boolean isAt(Place place) {
      return failure != null && failure.operation == number && failure.place == place;
    }

    private void fail(Place place) {
      if (isAt(place)) {
        throw new Lost();
      }
    }

    @Override
    void run(double[] words, Supplier<List<NDArray>> memory, Runnable operation) {
      runs = 0;
      boolean isFailing = failures.values().stream().anyMatch(each -> each.operation == number);
      if (isFailing && failure == null) {
        others.countDown();
      }
      super.run(
          words,
          memory,
          () -> {
            if (isAt(Place.BEFORE)) {
              await(others);
              throw new Lost();
            }
            if (runs++ == 1) {
              fail(Place.AGAIN);
            }
            runOrSpoil(words, memory, operation);
            fail(Place.AFTER);
            if (isAt(Place.AFTER_OTHERS) || isAt(Place.AFTER_OTHERS_NOT_LOST) && runs == 1) {
              await(finished);
              fail(Place.AFTER_OTHERS);
              spoil(words, memory);
              throw new RankLostException("planned");
            }
          });
      if (isFailing) {
        finished.countDown();
      }
      number++;
    }

    /** A call that fails may leave anything in its buffers. */
    private void runOrSpoil(double[] words, Supplier<List<NDArray>> memory, Runnable operation) {
      try {
        operation.run();
      } catch (RankLostException e) {
        spoil(words, memory);
        throw e;
      }
    }

    private void spoil(double[] words, Supplier<List<NDArray>> memory) {
      Arrays.fill(words, Double.NaN);
      memory.get().forEach(array -> array.muli(Double.NaN));
    }

    private void await(CountDownLatch latch) {
      boolean over = false;
      while (!over) {
        try {
          latch.await();
          over = true;
        } catch (InterruptedException e) {
          // because another rank has failed
        }
      }
    }
  }

  /** Fails between the exchange of the rows and the average. */
  private CallInterceptor inAverage(FailingCalls calls) {
    return new CallInterceptor() {
      @Override
      public CollectiveCall beforeCall(CollectiveCall call, int ranks) {
        if (calls.runs == 1) { // and not at the start
          calls.fail(Place.BEFORE_AVERAGE);
        }
        return call;
      }

      @Override
      public void beforeCopy() {}
    };
  }

  /** Trains with the planned failures. Returns what the ranks that are left have. */
  private Map<Integer, Outcome> train() {
    others = new CountDownLatch(RANKS - failures.size());
    finished = new CountDownLatch(1);
    Map<Integer, Outcome> left = new ConcurrentHashMap<>();
    ThreadLocal<FailingCalls> own = new ThreadLocal<>();
    try {
      LocalRanks.run(
          RANKS,
          builder ->
              ((CallInterceptor.Installer) Training.HOST.apply(builder))
                  .interceptor(
                      sync -> {
                        own.set(new FailingCalls(sync));
                        return inAverage(own.get());
                      }),
          sync -> {
            DataParallel listener = new DataParallel(own.get()).elastic(true);
            left.put(sync.rank(), training.run(sync, listener));
            assertEquals(
                RANKS - failures.values().stream().filter(Failure::isLoss).count(),
                listener.sync().size());
            if (listener.sync() != sync) { // the listener has closed its own
              assertThrows(IllegalStateException.class, listener.sync()::barrier);
            }
          });
    } catch (GradientSyncException e) {
      if (!(e.getCause() instanceof Lost)) {
        throw e; // otherwise a rank has failed after the others had ended
      }
    }
    Outcome first = left.values().iterator().next();
    for (Outcome other : left.values()) {
      assertArrayEquals(first.weights(), other.weights());
      assertEquals(first.losses(), other.losses());
      assertEquals(first.validations(), other.validations());
      assertEquals(first.accuracies(), other.accuracies());
    }
    return left;
  }

  /**
   * Trains without anybody failing. From some operations on, a rank takes no part any more: the
   * others train with a new trainer, and with the weights and moments that they have.
   *
   * @param losses operations by rank
   */
  private float[] undisturbed(Map<Integer, Integer> losses) {
    Map<Integer, float[]> left = new ConcurrentHashMap<>();
    CountDownLatch end = new CountDownLatch(RANKS - losses.size());
    LocalRanks.run(
        RANKS,
        Training.HOST,
        sync -> {
          try (Model model = Model.newInstance("undisturbed" + sync.rank(), Device.cpu());
              NDManager data = NDManager.newBaseManager(Device.cpu())) {
            model.setBlock(training.block.apply(sync.rank()));
            DefaultTrainingConfig first = config(sync);
            Trainer trainer = new RankTrainer(model, first);
            trainer.initialize(new Shape(1, Training.FEATURES));
            RandomAccessDataset part = DataParallel.part(sync, training.rows(data));
            Iterator<Batch> batches = null;
            GradientSync ranks = sync;
            for (int number = 0; number < EPOCHS * OPERATIONS; number++) {
              if (losses.containsValue(number)) {
                trainer.close();
                boolean leaves = Objects.equals(losses.get(sync.rank()), number);
                ranks = ranks.split(leaves ? -1 : 0, sync.rank());
                if (ranks == null) {
                  end.await();
                  return;
                }
                List<float[]> own = means(model).map(NDArray::toFloatArray).toList();
                trainer = new RankTrainer(model, config(ranks).optOptimizer(first.getOptimizer()));
                Iterator<float[]> values = own.iterator(); // for now they are those of one rank
                means(model).forEach(array -> array.set(values.next()));
              }
              int operation = number % OPERATIONS;
              batches = operation == 0 ? part.getData(data).iterator() : batches;
              if (operation < STEPS) {
                EasyTrain.trainBatch(trainer, batches.next());
                trainer.step();
              } else if (operation == MEANS) {
                Trainer current = trainer;
                trainer.notifyListeners(listener -> listener.onEpoch(current));
              }
            }
            left.put(sync.rank(), Training.weights(model));
            trainer.close();
            end.countDown();
          }
        });
    float[] weights = left.values().iterator().next();
    left.values().forEach(other -> assertArrayEquals(weights, other));
    return weights;
  }

  /** Those of normalizations, which differ between ranks until an epoch ends. */
  private static Stream<NDArray> means(Model model) {
    return model.getBlock().getParameters().values().stream()
        .filter(parameter -> parameter.getType().name().startsWith("RUNNING"))
        .map(Parameter::getArray);
  }

  private static DefaultTrainingConfig config(GradientSync ranks) {
    return Training.config(Device.cpu(), DataParallel.with(ranks));
  }

  private void requireLeft(float[] expected, Integer... ranks) {
    Map<Integer, Outcome> left = train();
    assertEquals(Set.of(ranks), left.keySet());
    assertArrayEquals(expected, left.get(ranks[0]).weights());
  }

  private static Integer[] others(int lost) {
    return IntStream.range(0, RANKS).filter(rank -> rank != lost).boxed().toArray(Integer[]::new);
  }

  @Test
  void withoutALossTheBitsAreThoseOfATrainingThatIsNotElastic() {
    requireLeft(undisturbed(Map.of()), 0, 1, 2);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 1, BEFORE_AVERAGE", "1, 2, BEFORE", "1, 0, BEFORE_AVERAGE", "2, 2, BEFORE",
    "3, 0, BEFORE", "3, 1, BEFORE_AVERAGE", "4, 2, BEFORE", "5, 0, BEFORE",
    "6, 1, BEFORE_AVERAGE", "6, 0, BEFORE_AVERAGE", "7, 2, BEFORE", "8, 0, BEFORE_AVERAGE"
  })
  void anOperationIsRepeated(int operation, int lost, Place place) {
    float[] expected = undisturbed(Map.of(lost, operation));
    failures.put(lost, new Failure(operation, place));
    requireLeft(expected, others(lost));
  }

  /** Rank 1 does not know that the operation is finished, and the third one is lost. */
  @ParameterizedTest
  @CsvSource({"0, 0", "0, 2", "1, 0", "2, 0", "3, 2", "4, 0", "6, 0", "8, 2"})
  void aRankThatIsBehindGetsTheResults(int operation, int lost) {
    float[] expected = undisturbed(Map.of(lost, operation + 1));
    failures.put(lost, new Failure(operation, Place.AFTER_OTHERS));
    failures.put(1, new Failure(operation, Place.AFTER_OTHERS_NOT_LOST));
    requireLeft(expected, others(lost));
  }

  /** The others have finished the operation, or not. */
  @ParameterizedTest
  @CsvSource({"0, 1", "1, 0", "3, 2", "4, 0", "6, 2"})
  void aRankIsLostAfterAnOperation(int operation, int lost) {
    failures.put(lost, new Failure(operation, Place.AFTER));
    Map<Integer, Outcome> left = train();
    assertEquals(Set.of(others(lost)), left.keySet());
    float[] weights = left.get(others(lost)[0]).weights();
    if (!Arrays.equals(undisturbed(Map.of(lost, operation)), weights)) {
      assertArrayEquals(undisturbed(Map.of(lost, operation + 1)), weights);
    }
  }

  @Test
  void ranksAreLostOneAfterAnother() {
    float[] expected = undisturbed(Map.of(0, 1, 1, 6));
    failures.put(0, new Failure(1, Place.BEFORE_AVERAGE));
    failures.put(1, new Failure(6, Place.BEFORE_AVERAGE));
    requireLeft(expected, 2);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 6})
  void anotherRankIsLostWhenAStepIsRepeated(int operation) {
    float[] expected = undisturbed(Map.of(0, operation, 2, operation));
    failures.put(2, new Failure(operation, Place.BEFORE_AVERAGE));
    failures.put(0, new Failure(operation, Place.AGAIN));
    requireLeft(expected, 1);
  }

  @ParameterizedTest
  @ValueSource(ints = {7, 2})
  void batchesMayBeUneven(int rows) {
    training.block = Training::block;
    training.rows = rows;
    training.batch = 2;
    for (int lost = 0; lost < RANKS; lost++) {
      failures.put(lost, new Failure(1, Place.BEFORE));
      assertEquals(Set.of(others(lost)), train().keySet());
      failures.clear();
    }
  }

  /** As the first one would have. */
  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "-1, false", "-1, true", "2, false", "2, true"})
  void theNewRankZeroSaves(int checkpoint, boolean saverFirst, @TempDir Path folder)
      throws Exception {
    training.listeners =
        (sync, own) -> {
          String target = folder.resolve("rank" + sync.rank()).toString();
          TrainingListener saver = new SaveModelTrainingListener(target, "model", checkpoint);
          List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
          all.addAll(saverFirst ? List.of(saver, own) : List.of(own, saver));
          return all;
        };
    assertEquals(RANKS, train().size());
    List<String> names = names(folder.resolve("rank0"));
    failures.put(0, new Failure(METRICS, Place.BEFORE));
    assertEquals(Set.of(1, 2), train().keySet());
    assertEquals(names, names(folder.resolve("rank1")));
    assertFalse(Files.exists(folder.resolve("rank2")));
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }
}
