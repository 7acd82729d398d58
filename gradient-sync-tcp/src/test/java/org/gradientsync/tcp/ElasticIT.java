package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How trainings go on whose processes are killed at random times, and join again. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class ElasticIT {
  /** A long test, by hand: {@code -Delastic.losses=100}. */
  private static final int LOSSES = Integer.getInteger("elastic.losses", 5);

  private static final int STEPS_OF_A_LOSS = 60;

  @TempDir Path folder;
  private final Map<Process, Integer> ranks = new LinkedHashMap<>();
  private int port;
  private int size;
  private int least = 1;
  private int pauseMillis = 15;
  private int steps = 40;
  private int started;

  @BeforeEach
  void choosePort() throws IOException {
    port = Ranks.freePort();
  }

  @AfterEach
  void endAll() {
    ranks.keySet().forEach(Process::destroyForcibly);
  }

  private Process start(int rank, boolean joins, String... more) throws IOException {
    return start(rank, joins, List.of(), more);
  }

  private Process start(int rank, boolean joins, List<String> prefix, String... more)
      throws IOException {
    List<String> options =
        new ArrayList<>(List.of("-Dgradientsync.elastic=true", "-Dgradientsync.timeout=60"));
    if (joins) {
      options.add("-Dfirst=" + steps); // as with a checkpoint of an older training
    }
    options.addAll(List.of(more));
    List<String> command = new ArrayList<>(prefix);
    command.addAll(
        Ranks.command(
            options,
            ElasticProgram.class,
            Integer.toString(steps),
            Integer.toString(pauseMillis),
            Integer.toString(least),
            folder.toString()));
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log-" + started++).toFile());
    Map<String, String> variables = builder.environment();
    variables.put("RANK", Integer.toString(rank));
    variables.put("WORLD_SIZE", Integer.toString(size));
    variables.put("MASTER_ADDR", "127.0.0.1");
    variables.put("MASTER_PORT", Integer.toString(port));
    variables.put("GRADIENTSYNC_SECRET", Ranks.SECRET);
    if (joins && rank == 0) { // others find out
      variables.put("GRADIENTSYNC_JOIN", "true");
    }
    Process process = builder.start();
    ranks.put(process, rank);
    return process;
  }

  private boolean trains(Process process) {
    return Files.exists(folder.resolve("step-" + process.pid()));
  }

  private void awaitTraining(int count) throws InterruptedException {
    long start = System.nanoTime();
    while (ranks.keySet().stream().filter(Process::isAlive).filter(this::trains).count() < count) {
      assertTrue(System.nanoTime() - start < TimeUnit.MINUTES.toNanos(2), this::logs);
      Thread.sleep(5);
    }
  }

  private void awaitStepAlone(Process process) throws Exception {
    Path steps = folder.resolve("step-" + process.pid());
    long start = System.nanoTime();
    while (!Files.readString(steps).contains(" 1 ")) {
      assertTrue(System.nanoTime() - start < TimeUnit.MINUTES.toNanos(2), this::logs);
      Thread.sleep(5);
    }
  }

  private String logs() {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < started; i++) {
      try {
        text.append("== ").append(i).append('\n');
        text.append(Files.readString(folder.resolve("log-" + i)));
      } catch (IOException e) {
        text.append(e);
      }
    }
    return text.toString();
  }

  /** Waits for the end of all, and returns the ranks' numbers of each step, from the results. */
  private Map<Long, Integer> finish() throws Exception {
    for (Process process : ranks.keySet()) {
      assertTrue(process.waitFor(2 + LOSSES / 10, TimeUnit.MINUTES), this::logs);
    }
    List<List<String>> results = new ArrayList<>();
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file :
          files.filter(f -> f.getFileName().toString().startsWith("result")).toList()) {
        results.add(Files.readAllLines(file));
      }
    }
    assertFalse(results.isEmpty(), this::logs);
    results.forEach(result -> assertEquals(results.get(0), result, this::logs));
    Map<Long, Integer> sizes = new HashMap<>();
    for (String word : results.get(0).get(0).split(" ")) {
      sizes.put(
          Long.valueOf(word.split("=")[0]), Integer.valueOf(word.substring(word.indexOf('=') + 1)));
    }
    float[] actual = new float[results.get(0).size() - 1];
    for (int i = 0; i < actual.length; i++) {
      actual[i] = Float.intBitsToFloat(Integer.parseUnsignedInt(results.get(0).get(i + 1), 16));
    }
    assertArrayEquals(expected(sizes, actual.length), actual, 0, () -> sizes + logs());
    return sizes;
  }

  /** The weights of an undisturbed run with the given numbers of ranks. */
  private float[] expected(Map<Long, Integer> sizes, int count) {
    float[] weights = new float[count];
    float[] moments = new float[count];
    for (long step = 0; step < steps; step++) {
      int ranks = sizes.get(step);
      for (int i = 0; i < count; i++) {
        float sum = ElasticProgram.gradient(weights[i], step, 0, ranks, i);
        for (int rank = 1; rank < ranks; rank++) {
          sum += ElasticProgram.gradient(weights[i], step, rank, ranks, i);
        }
        moments[i] = 0.875f * moments[i] + sum / ranks;
        weights[i] -= 0.5f * moments[i];
      }
    }
    return weights;
  }

  /** Kills ranks at random times, rank 0 among them, two at once, and while others go on. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void killedRanksAreLeftOut(int seed) throws Exception {
    Random random = new Random(seed);
    size = 4;
    for (int rank = 0; rank < size; rank++) {
      start(rank, false);
    }
    awaitTraining(size);
    List<Process> victims = new ArrayList<>(ranks.keySet());
    if (seed != 1) {
      Collections.shuffle(victims, random); // otherwise rank 0
    }
    Thread.sleep(random.nextInt(300));
    victims.get(0).destroyForcibly();
    Thread.sleep(seed == 2 ? 0 : random.nextInt(250)); // in the recovery at times
    victims.get(1).destroyForcibly();
    Map<Long, Integer> sizes = finish();
    assertEquals(2, sizes.get(steps - 1L), this::logs);
    for (Process process : victims.subList(2, size)) {
      assertEquals(0, process.exitValue(), this::logs);
    }
  }

  /** One, two at once, rank 0, one while the others recover, one while another one joins. */
  @Test
  void ranksAreKilledAtRandomTimesAndJoinAgain() throws Exception {
    Random random = new Random(LOSSES);
    steps = LOSSES * STEPS_OF_A_LOSS;
    pauseMillis = 30;
    least = 2; // those left wait for others, at times
    size = 4;
    for (int rank = 0; rank < size; rank++) {
      start(rank, false);
    }
    awaitTraining(size);
    int killed = 0;
    while (killed < LOSSES) {
      List<Process> alive = alive();
      List<Process> victims = new ArrayList<>(alive.stream().filter(this::trains).toList());
      int most = victims.size() - 1; // one keeps the state
      int manner = random.nextInt(4);
      Process first = victims.get(0); // in the job for the longest time, so rank 0
      Collections.shuffle(victims, random);
      if (manner == 0) {
        victims.remove(first);
        victims.add(0, first);
      }
      for (int i = 0; i < Math.min(most, manner == 0 ? 1 : manner); i++) {
        victims.get(i).destroyForcibly().waitFor();
        killed++;
        Thread.sleep(manner == 3 ? random.nextInt(100) : 0);
      }
      for (int i = alive().size(); i < size; i++) {
        start(random.nextInt(size), true);
      }
      Thread.sleep(random.nextInt(1_500)); // the next ones while these join, at times
    }
    Files.createFile(folder.resolve("fast"));
    finish();
    System.out.println("killed " + killed + " ranks, started " + started);
  }

  private List<Process> alive() {
    return ranks.keySet().stream().filter(Process::isAlive).toList();
  }

  @Test
  void aRankLeavesAfterASignal() throws Exception {
    size = 3;
    for (int rank = 0; rank < size; rank++) {
      start(rank, false);
    }
    awaitTraining(size);
    Process leaves = new ArrayList<>(ranks.keySet()).get(0);
    leaves.destroy(); // SIGTERM
    Map<Long, Integer> sizes = finish();
    assertEquals(0, leaves.exitValue(), this::logs);
    assertTrue(logs().contains("\nleft\n"), this::logs);
    assertEquals(2, sizes.get(steps - 1L), this::logs);
  }

  @Test
  void aRankThatJoinsGetsTheState() throws Exception {
    size = 2;
    pauseMillis = 100; // the other does not end before this one has started
    Process other = start(0, false);
    Process killed = start(1, false);
    awaitTraining(2);
    killed.destroyForcibly().waitFor();
    awaitStepAlone(other);
    // The limit of the wait for an answer, less than that for a step's end.
    Process again = start(1, true, "-Dgradientsync.elastic.wait=PT0.05S");
    Map<Long, Integer> sizes = finish();
    assertEquals(0, again.exitValue(), this::logs);
    assertEquals(2, sizes.get(steps - 1L), this::logs);
    assertTrue(sizes.containsValue(1), () -> "" + sizes);
  }

  /** As when two processes have one number. */
  @Test
  void aProcessTooManyWaitsForAPlace() throws Exception {
    size = 2;
    pauseMillis = 200; // the job does not end before the third process has come
    start(0, false);
    Process killed = start(1, false);
    awaitTraining(2);
    Process third = start(1, true);
    Thread.sleep(3_000);
    assertFalse(trains(third), this::logs);
    killed.destroyForcibly().waitFor();
    Map<Long, Integer> sizes = finish();
    assertEquals(0, third.exitValue(), this::logs);
    assertEquals(2, sizes.get(steps - 1L), this::logs);
    assertFalse(sizes.containsValue(3), () -> "" + sizes);
  }

  @Test
  void aProcessWithOtherSettingsFailsAlone() throws Exception {
    size = 2;
    least = 2; // the other waits
    Process waits = start(0, false);
    Process killed = start(1, false);
    awaitTraining(2);
    killed.destroyForcibly().waitFor();
    Process ofOtherWire = start(1, true, "-Dgradientsync.wire=bfloat16");
    Process ofOtherVersion = start(1, true, "-Dversion=9");
    Process ofOtherModel = start(1, true, "-Dcount=7");
    for (Process wrong : List.of(ofOtherWire, ofOtherVersion, ofOtherModel)) {
      assertTrue(wrong.waitFor(1, TimeUnit.MINUTES), this::logs);
      assertEquals(1, wrong.exitValue(), this::logs);
    }
    for (String text :
        List.of(
            "cannot join the job: the job has wire=(none), this process wire=bfloat16; set"
                + " gradientsync.wire as in the job, and start this process again, rank=1",
            " of gradient-sync-tcp, this process 9; use one version on all ranks, rank=1",
            "the states of rank 0 and rank 1 differ: 2 buffers with 120066 elements on rank 0, 2"
                + " buffers with 42 elements on rank 1, rank=1; this process cannot join")) {
      assertTrue(logs().contains(text), this::logs);
    }
    Process right = start(1, true);
    Map<Long, Integer> sizes = finish();
    assertEquals(0, right.exitValue(), this::logs);
    assertEquals(0, waits.exitValue(), this::logs);
    assertEquals(Set.of(2), Set.copyOf(sizes.values()), this::logs);
  }

  /** Another machine without power closes no connection: it only falls silent. */
  @Test
  @Tag("nodes")
  void aSilentRankOfAnotherNodeIsLeftOut() throws Exception {
    String silence = "-Dgradientsync.elastic.silence=2";
    String node = "hostname node1 && mount -t tmpfs none /dev/shm && exec \"$@\"";
    size = 3;
    start(0, false, silence);
    start(1, false, silence);
    Process silent =
        start(
            2,
            false,
            List.of(
                "unshare", "--map-root-user", "--uts", "--ipc", "--mount", "sh", "-c", node, "sh"),
            silence);
    awaitTraining(size);
    Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(silent.pid())).start();
    assertEquals(0, stop.waitFor());
    ranks.remove(silent);
    try {
      Map<Long, Integer> sizes = finish();
      assertEquals(2, sizes.get(steps - 1L), this::logs);
      assertTrue(logs().contains("rank 0: rank 2 (host=node1, "), this::logs);
      assertTrue(logs().contains("cannot be reached: it has sent nothing for "), this::logs);
    } finally {
      silent.destroyForcibly();
    }
  }

  @Test
  @Tag("nodes")
  void aProcessThatCannotUseTheReducerFailsAlone() throws Exception {
    size = 2;
    least = 2; // the other waits
    String reducer = "-Dgradientsync.reducer=shared";
    start(0, false, reducer);
    Process killed = start(1, false, reducer);
    awaitTraining(2);
    killed.destroyForcibly().waitFor();
    String hide = "mount -t tmpfs -o ro none /dev/shm && exec \"$@\"";
    Process wrong = start(1, true, List.of("unshare", "--mount", "sh", "-c", hide, "sh"), reducer);
    assertTrue(wrong.waitFor(1, TimeUnit.MINUTES), this::logs);
    assertEquals(1, wrong.exitValue(), this::logs);
    start(1, true, reducer);
    assertEquals(Set.of(2), Set.copyOf(finish().values()), this::logs);
  }
}
