package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training of a perceptron with ranks as threads. */
class TrainMlpTest {
  private static final String WIDTHS = "--widths=6,12,9,4";
  private static final String RATE = "--rate=0.5";
  private static final String SMALL_BUCKETS = "--first-bucket-mb=0.0001";
  private static final int ROWS = 24; // of a batch on all ranks

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({"2,true", "2,false", "3,true", "3,false", "4,true", "4,false"})
  void ranksTogetherLearnWhatOneLearnsFromAllRows(int ranks, boolean overlap) throws IOException {
    Trained one = Trained.run(folder, 1, WIDTHS, RATE, "--rows=" + ROWS, "--steps=100");
    Trained several =
        Trained.run(
            folder,
            ranks,
            WIDTHS,
            RATE,
            "--rows=" + ROWS / ranks,
            "--steps=100",
            SMALL_BUCKETS,
            "--bucket-mb=0.0001",
            overlap ? "--overlap" : "--no-overlap");
    assertClose(one.losses(), several.losses());
    assertTrue(one.losses().get(99) < one.losses().get(0) / 2, one::toString);
  }

  @ParameterizedTest
  @CsvSource({"1,true", "2,true", "2,false", "3,true", "4,true"})
  void addedUpBatchesAreOneLargeBatch(int ranks, boolean overlap) throws IOException {
    Trained one =
        Trained.run(folder, 1, WIDTHS, RATE, "--rows=" + 3 * ROWS, "--batches=2", "--steps=100");
    Trained several =
        Trained.run(
            folder,
            ranks,
            WIDTHS,
            RATE,
            "--rows=" + ROWS / ranks,
            "--batches=6",
            "--accumulate=3",
            "--steps=100",
            SMALL_BUCKETS,
            overlap ? "--overlap" : "--no-overlap");
    assertClose(one.losses(), several.losses());
  }

  private static void assertClose(List<Double> expected, List<Double> found) {
    assertEquals(100, expected.size());
    assertEquals(100, found.size());
    for (int step = 0; step < 100; step++) {
      double loss = expected.get(step);
      assertEquals(loss, found.get(step), 1e-10 * loss, "step " + step);
    }
  }

  @Test
  void twoRunsAreEqualToTheBit() throws IOException {
    String[] options = {WIDTHS, RATE, "--rows=5", "--steps=20", SMALL_BUCKETS, "--accumulate=2"};
    Trained first = Trained.run(folder, 3, options);
    assertEquals(first, Trained.run(folder, 3, options));
    String[] otherSeed =
        Stream.concat(Stream.of(options), Stream.of("--seed=2")).toArray(String[]::new);
    assertNotEquals(first.digest(), Trained.run(folder, 3, otherSeed).digest());
  }

  @Test
  void resumedTrainingEndsWithTheSameBits() throws IOException {
    String[] common = {WIDTHS, RATE, "--rows=5", "--batches=7", SMALL_BUCKETS};
    Path whole = folder.resolve("whole");
    Path half = folder.resolve("half");
    Trained all = Trained.run(folder, 2, with(common, "--steps=20", "--checkpoint=" + whole));
    Trained first = Trained.run(folder, 2, with(common, "--steps=11", "--checkpoint=" + half));
    Trained second =
        Trained.run(
            folder, 2, with(common, "--steps=20", "--resume=" + half, "--checkpoint=" + half));
    assertNotEquals(first.digest(), second.digest());
    assertEquals(all.digest(), second.digest());
    assertEquals(all.losses().subList(11, 20), second.losses());
    assertArrayEquals(Files.readAllBytes(whole), Files.readAllBytes(half));
  }

  @ParameterizedTest
  @CsvSource({"1,true", "2,true", "2,false", "3,true", "3,false"})
  void shardedAdamHasTheBitsOfAdam(int ranks, boolean overlap) throws IOException {
    String[] options = {
      WIDTHS,
      "--optimizer=adam",
      "--rows=" + ROWS / ranks,
      "--steps=60",
      "--accumulate=2",
      SMALL_BUCKETS,
      "--bucket-mb=0.0001",
      overlap ? "--overlap" : "--no-overlap"
    };
    Trained whole = Trained.run(folder, ranks, options);
    assertEquals(whole, Trained.run(folder, ranks, with(options, "--sharded")));
    assertTrue(whole.losses().get(59) < whole.losses().get(0) / 2, whole::toString);
  }

  @Test
  void adamResumesWithAnotherNumberOfRanks() throws IOException {
    String[] common = {WIDTHS, "--optimizer=adam", SMALL_BUCKETS};
    String[] two = with(common, "--rows=" + ROWS / 2, "--steps=20");
    String[] three = with(common, "--rows=" + ROWS / 3, "--sharded");
    Path file = folder.resolve("three");
    Path whole = folder.resolve("whole");
    Path shards = folder.resolve("shards");
    Path other = folder.resolve("other");
    Trained.run(folder, 3, with(three, "--steps=11", "--checkpoint=" + file));
    Trained.run(folder, 3, with(common, "--rows=8", "--steps=11", "--checkpoint=" + other));
    assertArrayEquals(Files.readAllBytes(other), Files.readAllBytes(file));
    String resume = "--resume=" + file;
    Trained sharded =
        Trained.run(folder, 2, with(two, "--sharded", resume, "--checkpoint=" + shards));
    assertEquals(9, sharded.losses().size());
    assertEquals(sharded, Trained.run(folder, 2, with(two, resume, "--checkpoint=" + whole)));
    assertArrayEquals(Files.readAllBytes(whole), Files.readAllBytes(shards));
    Trained straight = Trained.run(folder, 3, with(three, "--steps=20"));
    assertEquals(
        straight.digest(), Trained.run(folder, 3, with(three, "--steps=20", resume)).digest());
    Run.of(new TrainMlp(), WIDTHS, "--steps=20", resume)
        .exits(3)
        .complainsInOneLine("optimizer=ADAM, expected=SGD");
  }

  @Test
  void theSizeOfAdamsMomentsIsTold() {
    String[] options = {"--width=64", "--layers=3", "--steps=1", "--optimizer=adam"};
    int bytes = 2 * 3 * 64 * 64 * Double.BYTES;
    Run.of(new TrainMlp(), with(options, "--local=3"))
        .exits(0)
        .prints("Adam's moments: " + bytes + " bytes on each rank");
    Run.of(new TrainMlp(), with(options, "--local=3", "--sharded"))
        .exits(0)
        .prints(
            "Adam's moments: 65536 bytes on each rank, 33.3% of the "
                + bytes
                + " without --sharded");
  }

  @Test
  void checkpointsAreWrittenInBetween() throws IOException {
    String[] common = {WIDTHS, "--rows=5"};
    Path file = folder.resolve("c");
    Path seen = folder.resolve("seen");
    TrainMlp stopped =
        new TrainMlp() {
          @Override
          MlpEngine engine(GradientSync sync, int[] shape) {
            return new HostMlp(sync, shape, 5) {
              private int forwards;

              @Override
              public void forward(int batch) {
                if (sync.rank() == 0 && forwards++ == 12) {
                  throw new IllegalStateException("stopped on purpose");
                }
                super.forward(batch);
              }
            };
          }
        };
    Run.of(
            stopped,
            with(common, "--local=2", "--steps=20", "--checkpoint=" + file, "--checkpoint-every=5"))
        .exits(3)
        .complains("stopped on purpose");
    Trained.run(folder, 2, with(common, "--steps=10", "--checkpoint=" + seen));
    assertArrayEquals(Files.readAllBytes(seen), Files.readAllBytes(file));
    try (Stream<Path> files = Files.list(folder)) {
      assertTrue(files.noneMatch(f -> f.toString().endsWith(".part")));
    }
  }

  @Test
  void unfitCheckpointIsRefused() throws IOException {
    Path file = folder.resolve("c");
    Trained.run(folder, 2, WIDTHS, "--steps=3", "--checkpoint=" + file);
    resume(file, WIDTHS, "--steps=3").exits(2).complains("nothing is left to do: --steps 3");
    resume(file, "--widths=6,12,9,5")
        .exits(3)
        .complainsInOneLine("widths=[6, 12, 9, 4], expected=[6, 12, 9, 5]");
    resume(file, WIDTHS, "--seed=2").exits(3).complainsInOneLine("seed=1, expected=2");
    resume(file, WIDTHS, "--data=random")
        .exits(3)
        .complainsInOneLine("data=TEACHER, expected=RANDOM");
    Run.of(new TrainMlp(), "--resume")
        .exits(2)
        .complainsInOneLine("--resume needs --checkpoint FILE, or a FILE of its own");
    resume(folder.resolve("none"), WIDTHS)
        .exits(3)
        .complainsInOneLine("cannot resume: there is no such file or folder: " + folder);
    byte[] bytes = Files.readAllBytes(file);
    bytes[bytes.length / 2] ^= 1;
    Files.write(file, bytes);
    resume(file, WIDTHS).exits(3).complainsInOneLine("checkpoint is damaged: file=" + file);
    Files.writeString(file, "this is a text, and not a checkpoint");
    resume(file, WIDTHS).exits(3).complainsInOneLine("not a checkpoint: file=" + file);
  }

  private static Run resume(Path file, String... options) {
    return Run.of(new TrainMlp(), with(options, "--local=2", "--resume=" + file));
  }

  private static String[] with(String[] options, String... more) {
    return Stream.concat(Stream.of(options), Stream.of(more)).toArray(String[]::new);
  }

  @Test
  void learnsWhatTheTeacherKnows() throws IOException {
    List<Double> losses = Trained.run(folder, 2, "--width=16", "--rows=32", RATE).losses();
    assertTrue(losses.get(199) < losses.get(0) / 4, losses::toString);
  }

  @Test
  void recognizesIrises() {
    Run run = Run.of(new TrainMlp(), "--local=3", "--data=iris", "--rows=40", "--batches=1");
    run.exits(0);
    // A third of them are of each kind, so always guessing the same reaches less than half.
    assertTrue(run.number("Accuracy in training:") > 0.9, run::toString);
    assertTrue(run.number("Accuracy in testing:") > 0.8, run::toString);
  }

  @Test
  void writesAPlotAndTellsTheEfficiency() throws IOException {
    Path plot = folder.resolve("loss.svg");
    Path json = folder.resolve("r.json");
    Run run =
        Run.of(
                new TrainMlp(),
                "--local=2",
                "--width=16",
                "--steps=30",
                "--warmup=3",
                "--alone",
                "--plot=" + plot,
                "--json=" + json)
            .exits(0)
            .printsLike("Throughput: \\d+ rows/s over all ranks")
            .printsLike("Step: [0-9.]+ (us|ms|s), mean of 27 steps, checkpoints left out")
            .printsLike("Step without averaging: [0-9.]+ (us|ms|s), efficiency: [0-9.]+");
    assertEquals(4, Trained.read(json).losses().size(), run::toString); // of steps 0, 10, 20, 29
    String svg = Files.readString(plot);
    assertTrue(svg.startsWith("<?xml") && svg.strip().endsWith("</svg>"), svg);
    assertEquals(4, svg.split("<line [^>]*rgb\\(0,55,255\\)", -1).length, svg); // three lines
  }

  @Test
  void oneRankWithOtherWeightsFails() {
    TrainMlp spoiled =
        new TrainMlp() {
          @Override
          MlpEngine engine(GradientSync sync, int[] shape) {
            return new HostMlp(sync, shape, 64) {
              @Override
              public void update(int layer, DeviceBuffer gradient, double rate) {
                super.update(layer, gradient, sync.rank() == 1 ? rate * 1.001 : rate);
              }
            };
          }
        };
    Run run = Run.of(spoiled, "--local=2", "--steps=1").exits(1);
    run.prints("[FAIL] The ranks have different weights.");
    assertFalse(run.out().contains("PASS"), run::toString);
  }

  @Test
  void divergedTrainingFails() {
    TrainMlp diverged =
        new TrainMlp() {
          @Override
          MlpEngine engine(GradientSync sync, int[] shape) {
            return new HostMlp(sync, shape, 64) {
              @Override
              public double loss() {
                return sync.rank() == 1 ? Double.POSITIVE_INFINITY : super.loss();
              }
            };
          }
        };
    Run run =
        Run.of(diverged, "--local=2", "--steps=1")
            .exits(1)
            .prints("[FAIL] The training has diverged: try a smaller --rate.");
    assertFalse(run.out().contains("PASS"), run::toString);
  }

  @Test
  void divergedTrainingReplacesNoCheckpoint() throws IOException {
    Path file = folder.resolve("weights");
    String keep = "--checkpoint=" + file;
    Run.of(new TrainMlp(), "--layers=1", "--steps=1", keep).exits(0);
    byte[] good = Files.readAllBytes(file);
    for (int steps : new int[] {25, 500}) { // the loss becomes infinite first
      Run.of(
              new TrainMlp(),
              "--layers=1",
              "--steps=" + steps,
              "--rate=1e9",
              "--resume=" + file,
              keep)
          .exits(1)
          .prints("[FAIL] The training has diverged: try a smaller --rate.")
          .complains("no checkpoint is written, as the training has diverged: steps done=" + steps);
      assertArrayEquals(good, Files.readAllBytes(file));
    }
  }

  @Test
  void onlyFilesAreReplaced() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    Path link = Files.createSymbolicLink(folder.resolve("link"), file);
    for (Path place : List.of(Path.of("/dev/null"), link)) {
      Run.of(new TrainMlp(), WIDTHS, "--steps=1", "--checkpoint=" + place)
          .exits(2)
          .complainsInOneLine("cannot write there, as it is no file, or a link to one: file=");
    }
    assertTrue(Files.isSymbolicLink(link));
  }

  @Test
  void aHealthyResumedRunIsNotScolded() throws IOException {
    Path file = folder.resolve("weights");
    Run.of(new TrainMlp(), WIDTHS, RATE, "--steps=9", "--checkpoint=" + file).exits(0);
    Run run =
        Run.of(
                new TrainMlp() {
                  private int steps;

                  @Override
                  MlpEngine engine(GradientSync sync, int[] shape) {
                    return new HostMlp(sync, shape, 64) {
                      @Override
                      public double loss() {
                        return ++steps; // other batches may have a larger loss
                      }
                    };
                  }
                },
                WIDTHS,
                RATE,
                "--steps=30",
                "--resume=" + file)
            .exits(0);
    assertFalse(run.out().contains("has not gone down"), run::toString);
  }

  @Test
  void gradientsOnTheCpuTakeNoWire() {
    Run.of(new TrainMlp(), WIDTHS, "--local=2", "--device=host", "--wire=bfloat16")
        .exits(2)
        .complainsInOneLine("--wire is for float32 gradients, and those computed on CPUs are");
  }

  @Test
  void tooLargeRateIsToldOf() {
    String advice = "The loss has not gone down: try another --rate.";
    Run.of(new TrainMlp(), WIDTHS, "--rate=100", "--steps=30").exits(0).prints(advice);
    Run run = Run.of(new TrainMlp(), WIDTHS, RATE, "--steps=30").exits(0);
    assertFalse(run.out().contains(advice), run::toString);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--layers=0",
        "--layers=1001",
        "--width=0",
        "--widths=5",
        "--widths=5,0",
        "--rows=0",
        "--rows=2000000000",
        "--batches=0",
        "--steps=0",
        "--accumulate=0",
        "--rate=0",
        "--rate=NaN",
        "--bucket-mb=0",
        "--first-bucket-mb=-1",
        "--wire=float32",
        "--loss-every=0",
        "--warmup=-1",
        "--warmup=200",
        "--checkpoint-every=5",
        "--plot=loss.png",
        "--timeline-plot=timeline.png",
        "--timeline-steps=0",
        "--timeline-steps=1001",
        "--data=mnist",
        "--optimizer=adagrad"
      })
  void impossibleValuesAreBadUse(String option) {
    Run.of(new TrainMlp(), "--local=2", option)
        .exits(2)
        .complainsInOneLine(option.substring(0, option.indexOf('=')));
  }

  @Test
  void optionsThatContradictEachOtherAreBadUse() {
    Run.of(new TrainMlp(), "--widths=5,3", "--layers=1")
        .exits(2)
        .complainsInOneLine("--widths says it all: leave out --layers and --width.");
    Run.of(new TrainMlp(), "--sharded")
        .exits(2)
        .complainsInOneLine("--sharded needs --optimizer ADAM, as plain gradient descent has no");
    Run.of(new TrainMlp(), "--data=IRIS", "--widths=4,3")
        .exits(2)
        .complainsInOneLine("--widths for IRIS begin with 5 and end with 3: --widths 4,3.");
    Path nowhere = folder.resolve("no/such/folder");
    for (String option :
        List.of("--json=", "--checkpoint=", "--plot=", "--timeline=", "--timeline-plot=")) {
      Run.of(new TrainMlp(), "--local=2", "--steps=1", option + nowhere + ".svg")
          .exits(2)
          .complainsInOneLine("cannot write there: file=" + nowhere);
    }
  }
}
