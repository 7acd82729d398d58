package org.gradientsync.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.AbstractBlock;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.BatchNorm;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Record;
import ai.djl.training.listener.SaveModelTrainingListener;
import ai.djl.training.listener.TrainingListener;
import ai.djl.training.listener.TrainingListenerAdapter;
import ai.djl.util.PairList;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.MismatchedCallException;
import org.gradientsync.djl.Training.Outcome;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Trainings of several ranks beside those of one. */
class DataParallelTest {
  /** Relative. The same rows, whose gradients are added up in another order. */
  private static final double TOLERANCE = 1e-5;

  private static final int RANKS = 3;
  private static final String FIRST_WEIGHT = "01Linear_weight";

  private final Training training = new Training();

  @Test
  void ranksTrainAsDjlDoesAloneWithAllTheirRows() {
    List<Outcome> outcomes = training.ranks(RANKS);
    training.batch *= RANKS;
    Outcome djl =
        LocalRanks.call(
                1, Training.HOST, sync -> training.run(sync, new TrainingListenerAdapter() {}))
            .get(0);
    requireAlike(djl, outcomes);
  }

  /**
   * With 7 rows one rank has more batches, with 10 the last ones differ, with 2 a rank has none.
   */
  @ParameterizedTest
  @CsvSource({
    "7, true",
    "10, true",
    "13, true",
    "2, true",
    "7, false",
    "10, false",
    "13, false",
    "2, false"
  })
  void batchesMayBeUneven(int rows, boolean validates) {
    training.rows = rows;
    training.batch = 2;
    training.validates = validates;
    List<Outcome> outcomes = training.ranks(RANKS);
    training.batch *= RANKS;
    requireAlike(training.ranks(1).get(0), outcomes);
  }

  /** A listener that comes after DJL's evaluators sees the averages in every order. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  void theOrderOfListenersDoesNotMatter(int place) {
    training.rows = 7;
    training.batch = 2;
    List<Outcome> expected = training.ranks(RANKS);
    training.listeners =
        (sync, own) -> {
          List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
          all.add(place, own);
          all.add(
              new TrainingListenerAdapter() {
                private int epoch;

                @Override
                public void onEpoch(Trainer trainer) {
                  Outcome now = Training.outcome(trainer);
                  double loss = expected.get(0).losses().get(epoch);
                  assertEquals(loss, now.losses().get(epoch));
                  assertEquals((float) loss, now.loss());
                  epoch++;
                }
              });
          return all;
        };
    requireAlike(expected.get(0), training.ranks(RANKS));
  }

  @Test
  void aModelMayBeInitializedBeforeTheTrainer() {
    List<Outcome> expected = training.ranks(RANKS);
    training.onModel =
        (sync, model) ->
            model
                .getBlock()
                .initialize(
                    model.getNDManager(), DataType.FLOAT32, new Shape(1, Training.FEATURES));
    requireAlike(expected.get(0), training.ranks(RANKS));
  }

  /** Counters and flags of models from elsewhere. */
  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"INT64", "BOOLEAN", "FLOAT16"})
  void parametersOfAllTypesBeginAsRankZeros(DataType type) {
    LocalRanks.run(
        2,
        Training.HOST,
        sync -> {
          try (Model model = Model.newInstance("types", Device.cpu())) {
            NDArray counter = model.getNDManager().create(new float[] {1 - sync.rank(), 1});
            Parameter parameter =
                Parameter.builder()
                    .setName("counter")
                    .setType(Parameter.Type.OTHER)
                    .optRequiresGrad(false)
                    .optArray(counter.toType(type, false))
                    .build();
            model.setBlock(new Holder(parameter));
            DefaultTrainingConfig config = Training.config(Device.cpu(), DataParallel.with(sync));
            try (Trainer trainer = new RankTrainer(model, config)) {
              assertArrayEquals(
                  new float[] {1, 1},
                  parameter.getArray().toType(DataType.FLOAT32, true).toFloatArray(),
                  trainer::toString);
            }
          }
        });
  }

  /** Has a parameter, and passes its input on. */
  private static final class Holder extends AbstractBlock {
    Holder(Parameter... parameters) {
      for (Parameter parameter : parameters) {
        addParameter(parameter);
      }
    }

    @Override
    protected NDList forwardInternal(
        ParameterStore store,
        NDList inputs,
        boolean training,
        PairList<String, Object> parameters) {
      return inputs;
    }

    @Override
    public Shape[] getOutputShapes(Shape[] inputShapes) {
      return inputShapes;
    }
  }

  @Test
  void blocksMayShareParameters() {
    training.onModel =
        (sync, model) -> {
          SequentialBlock block = (SequentialBlock) model.getBlock();
          Block shared = Linear.builder().setUnits(Training.CLASSES).build();
          block.add(shared).add(shared);
          block.setInitializer(block.getParameters().valueAt(0).getInitializer(), p -> true);
        };
    training.rows = 7;
    training.batch = 2;
    List<Outcome> outcomes = training.ranks(RANKS);
    training.batch *= RANKS;
    requireAlike(training.ranks(1).get(0), outcomes);
  }

  @Test
  void parametersThatDifferLaterAreRefused() {
    training.onTrainer =
        (sync, trainer) -> {
          weight(trainer).toByteBuffer(true).putFloat(0, sync.rank());
        };
    GradientSyncException e =
        assertThrows(GradientSyncException.class, () -> training.ranks(RANKS));
    String text = e.getCause().getMessage();
    assertTrue(
        text.startsWith(
            "the ranks have begun with different values of a parameter: parameter=" + FIRST_WEIGHT),
        text);
  }

  /** From the start, or after the first of 3 epochs. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aParameterFrozenOnOneRankIsNamed(int epochs) {
    training.onTrainer = (sync, trainer) -> freeze(trainer, epochs == 0 && sync.rank() == 1);
    training.listeners = atEndOfEpoch((sync, trainer) -> freeze(trainer, sync.rank() == 1));
    assertEquals(
        "the ranks' parameters differ: first=0 (01Linear_weight), rank=0:\n"
            + "  rank 0: 01Linear_weight FLOAT32(8, 4), trained\n"
            + "  rank 1: 01Linear_weight FLOAT32(8, 4), not trained\n"
            + "  rank 2: 01Linear_weight FLOAT32(8, 4), trained",
        ofRankZero(assertThrows(MismatchedCallException.class, () -> training.ranks(RANKS))));
  }

  /** The first exception is that of any rank. */
  private static String ofRankZero(GradientSyncException e) {
    return e.getMessage().replaceFirst("rank=[0-9]+:", "rank=0:");
  }

  @Test
  void parametersThatDifferWhenTheyAreThawedAreRefused() {
    training.onTrainer =
        (sync, trainer) -> {
          freeze(trainer, true);
          weight(trainer).toByteBuffer(true).putFloat(0, sync.rank());
        };
    training.listeners = atEndOfEpoch((sync, trainer) -> freeze(trainer, false));
    GradientSyncException e =
        assertThrows(GradientSyncException.class, () -> training.ranks(RANKS));
    assertTrue(
        e.getCause()
            .getMessage()
            .startsWith("the ranks have begun with different values of a parameter: parameter=01"),
        e::toString);
  }

  private static NDArray weight(Trainer trainer) {
    return trainer.getModel().getBlock().getParameters().get(FIRST_WEIGHT).getArray();
  }

  /** Models of two ranks that differ, and what each rank's error has. */
  private static Stream<Arguments> differentModels() {
    Shape flat = new Shape(6);
    return Stream.of(
        arguments(
            "another shape",
            List.of(parameter("a", DataType.FLOAT32, new Shape(2, 3))),
            List.of(parameter("a", DataType.FLOAT32, new Shape(3, 2))),
            "rank 1: a FLOAT32(3, 2), trained"),
        arguments(
            "another type",
            List.of(parameter("a", DataType.FLOAT32, flat)),
            List.of(parameter("a", DataType.FLOAT64, flat)),
            "rank 1: broadcast(FLOAT64[6] \"a\""),
        arguments(
            "another order",
            List.of(parameter("a", DataType.FLOAT32, flat), parameter("b", DataType.FLOAT32, flat)),
            List.of(parameter("b", DataType.FLOAT32, flat), parameter("a", DataType.FLOAT32, flat)),
            "rank 1: broadcast(FLOAT32[6] \"b\""),
        arguments(
            "other flags",
            List.of(parameter("a", DataType.BOOLEAN, new Shape(4))),
            List.of(parameter("a", DataType.BOOLEAN, new Shape(5))),
            "rank 1: broadcast(INT32[2] \"a\""),
        arguments(
            "nothing trained",
            List.of(parameter("a", DataType.FLOAT32, flat)),
            List.of(parameter("a", DataType.FLOAT32, flat).andThen(DataParallelTest::frozen)),
            "rank 1: a FLOAT32(6), not trained"),
        arguments(
            "one parameter more",
            List.of(parameter("a", DataType.FLOAT32, flat)),
            List.of(parameter("a", DataType.FLOAT32, flat), parameter("b", DataType.FLOAT32, flat)),
            "broadcast(FLOAT32[6] \"b\""),
        arguments(
            "no parameters",
            List.of(parameter("a", DataType.FLOAT32, flat)),
            List.of(),
            "broadcast(FLOAT32[6] \"a\""));
  }

  private static Function<NDManager, Parameter> parameter(String name, DataType type, Shape shape) {
    return manager ->
        Parameter.builder()
            .setName(name)
            .setType(Parameter.Type.OTHER)
            .optRequiresGrad(type != DataType.BOOLEAN)
            .optArray(manager.zeros(shape, type))
            .build();
  }

  private static Parameter frozen(Parameter parameter) {
    parameter.freeze(true);
    return parameter;
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource
  void differentModels(
      String what,
      List<Function<NDManager, Parameter>> first,
      List<Function<NDManager, Parameter>> second,
      String text) {
    LocalRanks.run(
        2,
        Training.HOST,
        sync -> {
          try (Model model = Model.newInstance("model", Device.cpu())) {
            model.setBlock(holder(model, sync.rank() == 0 ? first : second));
            try (Trainer trainer = new RankTrainer(model, Training.config(Device.cpu()));
                Replicas replicas = new Replicas(new ElasticCalls(sync), trainer)) {
              String found =
                  assertThrows(
                          MismatchedCallException.class,
                          () -> {
                            replicas.broadcast();
                            replicas.average(1, replicas.haveChanged());
                          })
                      .getMessage();
              assertTrue(found.contains(text), found);
            }
          }
        });
  }

  private static Holder holder(Model model, List<Function<NDManager, Parameter>> parameters) {
    return new Holder(
        parameters.stream()
            .map(each -> each.apply(model.getNDManager()))
            .toArray(Parameter[]::new));
  }

  @Test
  void aParameterThatIsTooLargeToCopyIsNamed() {
    LocalRanks.run(
        1,
        Training.HOST,
        sync -> {
          try (Model model = Model.newInstance("large", Device.cpu())) {
            NDArray array = model.getNDManager().create(new float[] {1, 2});
            model.setBlock(
                new Holder(
                    Parameter.builder()
                        .setName("embedding")
                        .setType(Parameter.Type.WEIGHT)
                        .optArray(Elsewhere.sized(array, new Shape(1 << 20, 1 << 9)))
                        .build()));
            DefaultTrainingConfig config = Training.config(Device.cpu(), DataParallel.with(sync));
            assertEquals(
                "parameter is too large to be copied through host memory:"
                    + " parameter=embedding, bytes=2147483648, most=2147483639;"
                    + " divide it into several parameters",
                assertThrows(IllegalStateException.class, () -> new RankTrainer(model, config))
                    .getMessage());
          }
        });
  }

  @Test
  void frozenParametersStay() {
    training.onTrainer = (sync, trainer) -> freeze(trainer, true);
    List<Outcome> frozen = training.ranks(RANKS);
    float[] first = LocalRanks.call(1, Training.HOST, sync -> untrained()).get(0);
    for (Outcome outcome : frozen) {
      assertArrayEquals(frozen.get(0).weights(), outcome.weights());
      int weights = Training.FEATURES * 8;
      assertArrayEquals(Arrays.copyOf(first, weights), Arrays.copyOf(outcome.weights(), weights));
    }
    assertNotEquals(first[first.length - 1], frozen.get(0).weights()[first.length - 1]);
  }

  @Test
  void parametersMayBeThawed() {
    training.onTrainer = (sync, trainer) -> freeze(trainer, true);
    training.listeners = atEndOfEpoch((sync, trainer) -> freeze(trainer, false));
    List<Outcome> outcomes = training.ranks(RANKS);
    training.batch *= RANKS;
    requireAlike(training.ranks(1).get(0), outcomes);
  }

  private static Training.Listeners atEndOfEpoch(BiConsumer<GradientSync, Trainer> action) {
    return (sync, own) -> {
      List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
      all.add(own);
      all.add(
          new TrainingListenerAdapter() {
            @Override
            public void onEpoch(Trainer trainer) {
              action.accept(sync, trainer);
            }
          });
      return all;
    };
  }

  private static void freeze(Trainer trainer, boolean freeze) {
    trainer.getModel().getBlock().getParameters().get(FIRST_WEIGHT).freeze(freeze);
  }

  private static float[] untrained() {
    try (Model model = Model.newInstance("untrained", Device.cpu())) {
      Block block = Training.block(0);
      block.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, Training.FEATURES));
      model.setBlock(block);
      return Training.weights(model);
    }
  }

  @ParameterizedTest
  @CsvSource({"-1, true", "-1, false", "1, true", "1, false", "2, true", "2, false"})
  void onlyRankZeroSaves(int checkpoint, boolean saverFirst, @TempDir Path folder)
      throws Exception {
    training.epochs = 3;
    training.listeners =
        (sync, own) -> {
          String target = Files.createDirectory(folder.resolve("rank" + sync.rank())).toString();
          TrainingListener saver = new SaveModelTrainingListener(target, "model", checkpoint);
          List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
          all.addAll(saverFirst ? List.of(saver, own) : List.of(own, saver));
          return all;
        };
    training.ranks(2);
    assertFalse(files(folder.resolve("rank0")).isEmpty());
    assertEquals(List.of(), files(folder.resolve("rank1")));
  }

  @ParameterizedTest
  @CsvSource({"true, true", "true, false", "false, false"})
  void runningMeansAreAveragedBeforeTheyAreSaved(
      boolean averages, boolean saverFirst, @TempDir Path folder) throws Exception {
    training.block =
        rank ->
            new SequentialBlock()
                .add(BatchNorm.builder().build())
                .add(Linear.builder().setUnits(Training.CLASSES).build());
    float[][] own = new float[2][];
    float[][] saved = new float[2][];
    training.listeners =
        (sync, dataParallel) -> {
          ((DataParallel) dataParallel).averageStatistics(averages);
          SaveModelTrainingListener saver =
              new SaveModelTrainingListener(folder.toString(), "model", 1);
          saver.setSaveModelCallback(
              trainer -> saved[sync.rank()] = runningMean(trainer.getModel()));
          TrainingListener last =
              new TrainingListenerAdapter() {
                @Override
                public void onTrainingBatch(Trainer trainer, BatchData data) {
                  own[sync.rank()] = runningMean(trainer.getModel());
                }
              };
          List<TrainingListener> all = new ArrayList<>(List.of(TrainingListener.Defaults.basic()));
          all.addAll(saverFirst ? List.of(saver, dataParallel) : List.of(dataParallel, saver));
          all.add(last);
          return all;
        };
    training.ranks(2);
    assertNull(saved[1]);
    for (int i = 0; i < own[0].length; i++) {
      assertTrue(own[0][i] != own[1][i], "the ranks have rows of their own");
      assertEquals(averages ? (own[0][i] + own[1][i]) / 2 : own[0][i], saved[0][i]);
    }
  }

  private static float[] runningMean(Model model) {
    return model.getBlock().getParameters().stream()
        .filter(pair -> pair.getValue().getType() == Parameter.Type.RUNNING_MEAN)
        .findFirst()
        .orElseThrow()
        .getValue()
        .getArray()
        .toFloatArray();
  }

  private static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList();
    }
  }

  @Test
  void severalDevicesOfARankAreRefused() {
    assertEquals(
        "a rank trains on one device: devices=[cpu(), gpu(0)], rank=0; add optDevices(new Device[]"
            + " {DataParallel.device(sync)}) to the training's configuration",
        refusal(Device.cpu(), Device.gpu(0)));
  }

  @Test
  void aModelOnAnotherDeviceIsRefused() {
    assertEquals(
        "the model is on another device than the training: model=cpu(), training=gpu(0), rank=0;"
            + " create the model on DataParallel.device(sync)",
        refusal(Device.gpu(0)));
  }

  /** For a model on the CPU. */
  private static String refusal(Device... devices) {
    return LocalRanks.call(
            1,
            Training.HOST,
            sync -> {
              DefaultTrainingConfig config =
                  Training.config(Device.cpu(), DataParallel.with(sync)).optDevices(devices);
              try (Model model = Model.newInstance("elsewhere", Device.cpu())) {
                model.setBlock(Training.block(0));
                return assertThrows(
                        IllegalStateException.class, () -> new RankTrainer(model, config))
                    .getMessage();
              }
            })
        .get(0);
  }

  @Test
  void partsHaveAllRowsOnce() {
    training.rows = 8;
    List<List<Long>> parts =
        LocalRanks.call(
            RANKS,
            Training.HOST,
            sync -> {
              try (NDManager data = NDManager.newBaseManager(Device.cpu())) {
                var all = training.rows(data);
                var part = DataParallel.part(sync, all);
                List<Long> found = new ArrayList<>();
                for (long i = 0; i < part.size(); i++) {
                  float[] row = part.get(data, i).getData().head().toFloatArray();
                  for (long j = 0; j < all.size(); j++) {
                    if (Arrays.equals(row, all.get(data, j).getData().head().toFloatArray())) {
                      found.add(j);
                    }
                  }
                }
                return found;
              }
            });
    assertEquals(List.of(List.of(0L, 3L, 6L), List.of(1L, 4L, 7L), List.of(2L, 5L)), parts);
  }

  /** DJL's default device may be another GPU than the rank's. */
  @ParameterizedTest
  @CsvSource({"cpu, false", "cpu, true", "gpu, false", "gpu, true"})
  void partsMayBeOnAnotherDevice(String type, boolean random) throws Exception {
    Device there = Device.of(type, type.equals("cpu") ? -1 : 0);
    Device rank = Device.gpu(1);
    LocalRanks.run(
        2,
        Training.HOST,
        sync -> {
          try (NDManager cpu = NDManager.newBaseManager(Device.cpu())) {
            NDManager trainer = Elsewhere.manager(cpu, rank);
            var part = DataParallel.part(sync, new Rows(cpu, there, random));
            List<Float> found = new ArrayList<>();
            for (var data : List.of(part, part.subDataset(1, 4))) {
              for (Batch batch : data.getData(trainer, (ExecutorService) null)) {
                try (batch) {
                  assertEquals(rank, batch.getManager().getDevice());
                  assertEquals(rank, batch.getData().head().getDevice());
                  assertEquals(rank, batch.getLabels().head().getDevice());
                  assertEquals(batch.getSize(), batch.getIndices().size());
                  for (float row : batch.getData().head().toFloatArray()) {
                    found.add(row);
                  }
                }
              }
            }
            List<Float> expected = new ArrayList<>(List.of(0f, 2f, 4f, 6f, 8f, 2f, 4f, 6f));
            expected.replaceAll(row -> row + sync.rank());
            if (random) {
              found.sort(null);
              expected.sort(null);
            }
            assertEquals(expected, found);
          }
        });
  }

  /** Ten rows on a device. Their numbers must be there, too, as PyTorch demands. */
  private static final class Rows extends ArrayDataset {
    private final NDManager cpu;
    private final Device device;

    Rows(NDManager cpu, Device device, boolean random) {
      super(new Builder(random));
      this.cpu = cpu;
      this.device = device;
      data = new NDArray[] {cpu.arange(10f)};
    }

    private NDArray there(NDArray array) {
      return Elsewhere.array(array, device);
    }

    @Override
    public Record get(NDManager manager, long index) {
      return new Record(new NDList(there(cpu.create(index))), null);
    }

    @Override
    public Batch getByIndices(NDManager manager, long... indices) {
      assertEquals(device, manager.getDevice());
      float[] found = new float[indices.length];
      for (int i = 0; i < found.length; i++) {
        found[i] = indices[i];
      }
      NDArray array = there(manager.create(found));
      return new Batch(
          manager, new NDList(array), new NDList(array), found.length, null, null, -1, -1);
    }

    /** The options. */
    private static final class Builder extends BaseBuilder<Builder> {
      Builder(boolean random) {
        setSampling(2, random);
      }

      @Override
      protected Builder self() {
        return this;
      }
    }
  }

  @Test
  void aRankInHostMemoryTrainsOnTheCpu() {
    LocalRanks.run(1, Training.HOST, sync -> assertEquals(Device.cpu(), DataParallel.device(sync)));
  }

  static void requireAlike(Outcome alone, List<Outcome> ranks) {
    Outcome first = ranks.get(0);
    for (Outcome other : ranks) { // the same bits
      assertArrayEquals(first.weights(), other.weights());
      assertEquals(first.losses(), other.losses());
      assertEquals(first.validations(), other.validations());
      assertEquals(first.accuracies(), other.accuracies());
      assertEquals(first.loss(), other.loss());
      assertEquals(first.accuracy(), other.accuracy());
    }
    requireClose(alone.losses(), first.losses());
    requireClose(alone.validations(), first.validations());
    requireClose(alone.accuracies(), first.accuracies());
    requireClose(List.of((double) alone.loss()), List.of((double) first.loss()));
    assertArrayEquals(alone.weights(), first.weights(), (float) TOLERANCE);
  }

  private static void requireClose(List<Double> expected, List<Double> actual) {
    assertEquals(expected.size(), actual.size());
    for (int i = 0; i < expected.size(); i++) {
      if (!expected.get(i).equals(actual.get(i))) { // NaN equals NaN here
        double tolerance = TOLERANCE * Math.abs(expected.get(i));
        assertEquals(expected.get(i), actual.get(i), tolerance, () -> expected + " " + actual);
      }
    }
  }
}
