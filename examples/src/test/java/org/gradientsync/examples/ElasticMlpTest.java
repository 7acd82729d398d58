package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the training of a perceptron whose ranks, which are threads, may be lost. */
class ElasticMlpTest {
  private static final String[] TASK = {
    "--widths=6,12,9,4", "--rows=5", "--batches=7", "--first-bucket-mb=0.0001", "--accumulate=2"
  };
  private static final int STEPS = 30;
  private static final int LOST_IN = 17; // a step

  @TempDir Path folder;

  private static String[] with(String options, String... more) {
    return Stream.of(TASK, options.split(" "), more).flatMap(Stream::of).toArray(String[]::new);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--rate=0.5", "--optimizer=adam", "--optimizer=adam --sharded"})
  void undisturbedRanksTrainAsOthers(String options) throws IOException {
    Path plain = folder.resolve("plain");
    Path elastic = folder.resolve("elastic");
    Trained expected = Trained.run(folder, 3, with(options, "--checkpoint=" + plain));
    assertEquals(
        expected, Trained.run(folder, 3, with(options, "--elastic", "--checkpoint=" + elastic)));
    assertArrayEquals(Files.readAllBytes(plain), Files.readAllBytes(elastic));
  }

  /** With shards the others go back to the newest copy. */
  @ParameterizedTest
  @CsvSource({
    "--rate=0.5, 17, 0",
    "--rate=0.5, 17, 1",
    "--optimizer=adam, 17, 2",
    "--optimizer=adam --sharded --commit-every=4, 16, 0",
    "--optimizer=adam --sharded --commit-every=4, 16, 1"
  })
  void aLostRankIsLeftOut(String options, int newest, int lost) throws IOException {
    String plain = options.replaceAll(" --commit.*", "");
    Path file = folder.resolve("file");
    Trained.run(folder, 3, with(plain, "--steps=" + newest, "--checkpoint=" + file));
    Trained expected = Trained.run(folder, 2, with(plain, "--steps=" + STEPS, "--resume=" + file));
    Run.of(losing(lost), with(options, "--local=3", "--elastic", "--steps=" + STEPS))
        .exits(0)
        .prints(
            "Ranks from step " + newest + " on: 2",
            "Ranks at the end: 2, changes: 1",
            "Digest of the weights: " + expected.digest(),
            "[PASS] All ranks have identical weights.");
  }

  /** A signal to one rank stops all; to each rank of an elastic training, if each gets one. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "--rate=0.5 --elastic",
        "--optimizer=adam --sharded --elastic",
        "--rate=0.5 --stop-on-signal",
        "--optimizer=adam --sharded --stop-on-signal"
      })
  void ranksThatStopTogetherSave(String options) throws IOException {
    boolean elastic = options.contains("--elastic");
    Path file = folder.resolve("file");
    TrainMlp asked = asking(rank -> elastic || rank == 1, GradientSync::requestStop);
    Run.of(asked, with(options, "--local=3", "--steps=" + STEPS, "--checkpoint=" + file))
        .exits(0)
        .prints("Stopped by a signal, steps done: " + (LOST_IN + 1));
    Trained straight = Trained.run(folder, 3, with(options, "--steps=" + STEPS));
    Trained rest = Trained.run(folder, 3, with(options, "--steps=" + STEPS, "--resume=" + file));
    assertEquals(straight.digest(), rest.digest());
    assertEquals(STEPS - LOST_IN - 1, rest.losses().size());
  }

  private static TrainMlp losing(int lost) {
    return asking(
        rank -> rank == lost,
        sync -> {
          throw new IllegalStateException("lost on purpose");
        });
  }

  private static TrainMlp asking(IntPredicate ranks, Consumer<GradientSync> what) {
    return new TrainMlp() {
      @Override
      MlpEngine engine(GradientSync sync, int[] shape) {
        boolean asks = sync.size() == 3 && ranks.test(sync.rank());
        return new HostMlp(sync, shape, 5) {
          private int forwards;

          @Override
          public void forward(int batch) {
            if (asks && forwards++ == 2 * LOST_IN) {
              what.accept(sync);
            }
            super.forward(batch);
          }
        };
      }
    };
  }

  @Test
  void aTrainingResumes() throws IOException {
    Path file = folder.resolve("file");
    String keep = "--checkpoint=" + file;
    String all = "--elastic --optimizer=adam";
    String digest = Trained.run(folder, 2, with(all, "--steps=20")).digest();
    Trained.run(folder, 2, with(all, "--steps=11", keep, "--resume"));
    Trained second = Trained.run(folder, 2, with(all, "--steps=20", keep, "--resume"));
    assertEquals(digest, second.digest());
    assertEquals(9, second.losses().size());
    Run.of(new TrainMlp(), with(all, "--local=2", "--steps=20", keep, "--resume"))
        .exits(0)
        .prints("Nothing is left to do: steps done: 20", "Digest of the weights: " + digest);
    Run.of(new TrainMlp(), with(all, "--local=2", "--steps=20", "--resume=" + file))
        .exits(2)
        .complains("nothing is left to do: --steps 20, steps done=20");
    Run.of(new TrainMlp(), with("--elastic", "--local=2", "--resume=" + file))
        .exits(3)
        .complainsInOneLine("cannot resume: checkpoint is another training's");
    Run.of(new TrainMlp(), with("--elastic", "--local=2", "--checkpoint=/none/file"))
        .exits(2)
        .complainsInOneLine("cannot write there: file=/none/file");
  }

  @ParameterizedTest
  @CsvSource({
    "--hook=topk:0.1, --elastic does not go with --hook",
    "--local-steps=2, --elastic does not go with",
    "--alone, --elastic does not go with",
    "--exposed, --elastic does not go with",
    "--timeline=file, --elastic does not go with",
    "--commit-every=3, --commit-every needs --elastic --sharded",
    "--optimizer=adam --sharded --checkpoint=file --checkpoint-every=15,"
        + " --checkpoint-every must be a multiple of --commit-every"
  })
  void refusesWhatDoesNotGoTogether(String options, String text) {
    Run.of(new TrainMlp(), with(options, "--local=2", "--elastic")).exits(2).complains(text);
  }
}
