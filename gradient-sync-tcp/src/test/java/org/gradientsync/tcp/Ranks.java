package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.BindException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.gradientsync.test.contract.RankJvm;

/** Starts a Java program as the ranks of a job, each with its variables. */
final class Ranks {
  /** The time after which a job counts as hanging. */
  static final long SECONDS = 240;

  static final String SECRET = "of the tests";

  /** How a rank has ended. */
  record Result(int exitCode, String output) {
    /** Checks that the output contains a text, and returns this result. */
    Result expect(String text) {
      assertTrue(output.contains(text), () -> "no '" + text + "' in the output:\n" + output);
      return this;
    }
  }

  private static final Queue<DatagramSocket> CHOSEN = new ConcurrentLinkedQueue<>();

  private final int port;
  private final List<Process> processes = new ArrayList<>();
  private final List<Path> outputs = new ArrayList<>();

  private Ranks(int port) {
    this.port = port;
  }

  /** Runs a class on some ranks, and waits for the end of all. */
  static List<Result> run(int size, List<String> options, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    return run(List.of(), size, options, main, arguments);
  }

  /** As above, each rank below a command. */
  static List<Result> run(
      List<String> below, int size, List<String> options, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    Ranks ranks = prepare();
    for (int rank = 0; rank < size; rank++) {
      List<String> command = new ArrayList<>(below);
      command.addAll(command(options, main, arguments));
      ranks.start(ranks.variables(rank, size), command);
    }
    return ranks.await();
  }

  /** A job with a port of its own, and no ranks yet. */
  static Ranks prepare() throws IOException {
    return new Ranks(freePort());
  }

  /**
   * A port at which nobody listens, for one test. The system gives none of this range to who asks
   * for any. The UDP port of the same number is taken as long as this JVM runs, which keeps tests
   * of other JVMs from choosing it, too.
   */
  static int freePort() throws IOException {
    InetAddress here = InetAddress.getLoopbackAddress();
    for (int attempts = 1; ; attempts++) {
      int port = ThreadLocalRandom.current().nextInt(16_000, 32_000);
      try (ServerSocket socket = new ServerSocket(port, 1, here)) {
        CHOSEN.add(new DatagramSocket(port, here));
        return socket.getLocalPort();
      } catch (BindException e) {
        if (attempts == 100) {
          throw e;
        }
      }
    }
  }

  int port() {
    return port;
  }

  /** The variables of a rank, to be changed. */
  Map<String, String> variables(int rank, int size) {
    Map<String, String> variables = new LinkedHashMap<>();
    variables.put("RANK", Integer.toString(rank));
    variables.put("WORLD_SIZE", Integer.toString(size));
    variables.put("MASTER_ADDR", "127.0.0.1");
    variables.put("MASTER_PORT", Integer.toString(port));
    variables.put("GRADIENTSYNC_SECRET", SECRET);
    return variables;
  }

  /** Starts one rank. */
  void start(
      Map<String, String> variables, List<String> options, Class<?> main, String... arguments)
      throws IOException {
    start(variables, command(options, main, arguments));
  }

  /** The command of a rank. */
  static List<String> command(List<String> options, Class<?> main, String... arguments) {
    List<String> words = new ArrayList<>(List.of(main.getName()));
    words.addAll(List.of(arguments));
    return RankJvm.command(options, words.toArray(String[]::new));
  }

  /** Starts any command. */
  void start(Map<String, String> variables, List<String> command) throws IOException {
    Path output = Files.createTempFile("rank", ".log");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    builder.environment().putAll(variables);
    outputs.add(output);
    Process process = builder.start();
    process.getOutputStream().close();
    processes.add(process);
  }

  /** Waits for all that were started. */
  List<Result> await() throws IOException, InterruptedException {
    List<Result> results = new ArrayList<>();
    long start = System.nanoTime();
    boolean ended = true;
    for (int i = 0; i < processes.size(); i++) {
      Process process = processes.get(i);
      long left = TimeUnit.SECONDS.toNanos(SECONDS) - (System.nanoTime() - start);
      if (!process.waitFor(Math.max(left, 1), TimeUnit.NANOSECONDS)) {
        ended = false;
        process.destroyForcibly().waitFor();
      }
      results.add(
          new Result(
              process.exitValue(), Files.readString(outputs.get(i), StandardCharsets.UTF_8)));
      Files.delete(outputs.get(i));
    }
    assertTrue(ended, () -> "the job hangs: " + results);
    return results;
  }
}
