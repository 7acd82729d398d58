package org.gradientsync.tools.run;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.core.backend.TemporaryFiles;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.Scratch;

/**
 * The launcher of ranks that find each other over TCP: starts those of one node, with the variables
 * that gradient-sync-tcp reads. Tags each line with its rank. When a rank fails, it waits a moment
 * for the others, which report that, ends them, and exits with that rank's code.
 */
public final class RanksAsProcesses {
  /** The variable with the job's secret. */
  static final String SECRET = "GRADIENTSYNC_SECRET";

  /** The signals that ranks get, too. */
  static final List<String> FORWARDED = List.of("USR1", "USR2");

  private static final String JOIN = "GRADIENTSYNC_JOIN";
  private static final String WAITING = "GRADIENTSYNC_WAITING";

  /** What mpirun and srun say to this process, which they may have started on each node. */
  private static final Pattern OF_MPI = Pattern.compile("OMPI_COMM_WORLD_|PMIX?_");

  /** The losses of one rank, each soon after its start, after which it is not started again. */
  static final int MOST_LOSSES = 5;

  private static final long LONG_NANOS = 120_000_000_000L;
  private static final int SECRET_BYTES = 32;
  private static final long REPORT_SECONDS = 10;

  /** How long ranks have after a signal, for example to save. */
  static final long PATIENCE_SECONDS = 10;

  private static final int TERMINATED = 128 + 15;

  /**
   * Ends this process's group after its end, if it leads one, as {@link LauncherProcess} lets it.
   */
  private static final String WATCH =
      "trap '' HUP INT TERM USR1 USR2; [ \"$(cut -d' ' -f5 /proc/$PPID/stat)\" = $PPID ] || exit;"
          + " read line;"
          + " kill -TERM 0; sleep "
          + PATIENCE_SECONDS
          + "; kill -KILL 0";

  /**
   * A process that runs.
   *
   * @param joins a job that has begun
   * @param waiting a file that the rank deletes when it begins to take part
   */
  private record Started(int local, long nanos, boolean joins, Path waiting) {
    boolean takesPart() {
      return !Files.exists(waiting);
    }
  }

  private final int size;
  private final int first;
  private final int localSize;
  private final boolean elastic;
  private final boolean joins;
  private final String host;
  private final String port;
  private final Map<String, String> variables;
  private final List<String> command;
  private volatile boolean ending;
  private volatile Process watch; // null before the ranks are started
  private boolean hasInput; // of which rank 0 reads
  private final List<Process> processes = new ArrayList<>();
  private final Map<Process, Started> started = new ConcurrentHashMap<>();
  private final List<Thread> outputs = new CopyOnWriteArrayList<>();

  /**
   * The ranks of a node.
   *
   * @param size the number of ranks of all nodes
   * @param first the first one of this node
   * @param localSize how many this node has
   * @param master where rank 0 listens, {@code host:port}
   * @param elastic whether the others go on when a rank is lost, and it is started again to join
   *     them
   * @param joins whether the ranks join a job that has begun
   * @param variables what ranks have in their environment beyond that of this process
   * @param command the command of a rank
   */
  RanksAsProcesses(
      int size,
      int first,
      int localSize,
      String master,
      boolean elastic,
      boolean joins,
      Map<String, String> variables,
      List<String> command) {
    this.elastic = elastic;
    this.joins = joins;
    this.size = size;
    this.first = first;
    this.localSize = localSize;
    this.variables = variables;
    this.command = command;
    int colon = master.lastIndexOf(':');
    host = master.substring(0, colon);
    port = master.substring(colon + 1);
  }

  /**
   * Runs the ranks of this node, and ends the JVM.
   *
   * @param args the numbers of ranks and of nodes, this node's number, the master or {@code -},
   *     whether the job is elastic, and the command of a rank
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    int size = Integer.parseInt(args[0]);
    int nodes = Integer.parseInt(args[1]);
    int localSize = size / nodes;
    String master = args[3].equals("-") ? "127.0.0.1:" + freePort() : args[3];
    boolean needsSecret = nodes == 1 && System.getenv().getOrDefault(SECRET, "").isBlank();
    RanksAsProcesses ranks =
        new RanksAsProcesses(
            size,
            Integer.parseInt(args[2]) * localSize,
            localSize,
            master,
            Boolean.parseBoolean(args[4]),
            false,
            needsSecret ? Map.of(SECRET, newSecret()) : Map.of(),
            List.of(Arrays.copyOfRange(args, 5, args.length)));
    ranks.hasInput = true;
    System.exit(ranks.run());
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  static String newSecret() {
    byte[] random = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(random);
    return HexFormat.of().formatHex(random);
  }

  /** Runs them to their end, and returns the exit code of the first that failed, or 0. */
  int run() throws InterruptedException {
    try {
      return runAll();
    } catch (IOException e) {
      end();
      System.err.println("gradient-sync run: a rank cannot be started: " + e.getMessage());
      return Program.CANNOT_RUN;
    }
  }

  private int runAll() throws IOException, InterruptedException {
    BlockingQueue<Process> ended = new LinkedBlockingQueue<>();
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
    try {
      for (String name : FORWARDED) {
        Signals.handle(name, () -> forward(name));
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e);
    }
    watch = startWatch();
    for (int local = 0; local < localSize; local++) {
      Process process = start(local, joins);
      process.onExit().thenAccept(ended::add);
    }
    int failure = elastic ? awaitElastic(ended) : await(ended);
    end();
    return failure;
  }

  /**
   * Starts a process that ends the ranks when this one, which holds a pipe to it, is killed.
   * Returns null where there is no shell; then only they would live on.
   */
  private static Process startWatch() {
    try {
      return new ProcessBuilder("sh", "-c", WATCH)
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .redirectError(ProcessBuilder.Redirect.DISCARD)
          .start();
    } catch (IOException e) {
      return null;
    }
  }

  /** Waits until all have ended, or one has failed. */
  private int await(BlockingQueue<Process> ended) throws InterruptedException {
    int failure = 0;
    for (int running = localSize; running > 0; running--) {
      Process process = failure == 0 ? ended.take() : ended.poll(REPORT_SECONDS, TimeUnit.SECONDS);
      if (process == null) {
        break; // the others do not end by themselves
      }
      int code = process.exitValue();
      // A rank that aborts the job ends the others by SIGTERM, and its own code says more.
      failure = failure == 0 || failure == TERMINATED && code != 0 ? code : failure;
    }
    return failure;
  }

  /**
   * Waits until all have ended, and starts those again that are lost, as long as there are others.
   * One that fails by itself would fail again.
   *
   * @return the code of the last that took part
   */
  private int awaitElastic(BlockingQueue<Process> ended) throws InterruptedException {
    int[] losses = new int[localSize]; // each soon after a start
    boolean hasBegun = joins;
    long lastDone = System.nanoTime();
    int result = joins ? ExitCode.RANK_LOST : 0;
    for (int running = localSize; running > 0; running--) {
      Process process = ended.take();
      int code = process.exitValue();
      Started rank = started.remove(process);
      boolean othersTakePart = started.values().stream().anyMatch(Started::takesPart);
      hasBegun |= rank.takesPart() || othersTakePart;
      boolean cameTooLate =
          code == ExitCode.RANK_LOST
              && rank.joins()
              && (!rank.takesPart() || lastDone - rank.nanos() > 0);
      result = cameTooLate ? result : code;
      lastDone = code == 0 ? System.nanoTime() : lastDone;
      boolean ranLong = System.nanoTime() - rank.nanos() > LONG_NANOS;
      losses[rank.local()] = ranLong ? 1 : losses[rank.local()] + 1;
      boolean isLost = ExitCode.tellsOfLostRank(code) && losses[rank.local()] <= MOST_LOSSES;
      if (ending) {
        continue;
      }
      String name = "gradient-sync: rank " + (first + rank.local());
      if (!hasBegun && code != 0 && (!isLost || code == ExitCode.RANK_LOST)) {
        System.err.println(
            name + " has ended before all ranks had begun (exit code " + code + "); the job ends");
        return code;
      }
      if (hasBegun && !othersTakePart && size == localSize) {
        return result; // those that wait would join nobody
      }
      boolean hasMetNobody = code == ExitCode.RANK_LOST && rank.joins() && !rank.takesPart();
      if (hasBegun && !othersTakePart && hasMetNobody) {
        continue; // the ranks of the other nodes have ended, too
      }
      if (isLost) {
        System.err.println(
            name
                + " was lost ("
                + ExitCode.meaning(code)
                + (hasBegun
                    ? "); it is started again to join the others"
                    : ") before all ranks had begun; it is started again"));
        try {
          start(rank.local(), hasBegun).onExit().thenAccept(ended::add);
          running++;
        } catch (IOException e) {
          System.err.println(name + " cannot be started again: " + e.getMessage());
        }
      }
    }
    return result;
  }

  private Process start(int local, boolean joins) throws IOException {
    int rank = first + local;
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectInput(
        rank == 0 && hasInput
            ? ProcessBuilder.Redirect.INHERIT
            : ProcessBuilder.Redirect.from(new File("/dev/null")));
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> OF_MPI.matcher(name).lookingAt());
    environment.putAll(variables);
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(size));
    environment.put("LOCAL_RANK", Integer.toString(local));
    environment.put("LOCAL_WORLD_SIZE", Integer.toString(localSize));
    environment.put("MASTER_ADDR", host);
    environment.put("MASTER_PORT", port);
    if (joins) {
      environment.put(JOIN, "true");
    }
    Path waiting = null;
    if (elastic) {
      waiting = waitingFile();
      waiting.toFile().deleteOnExit();
      environment.put(WAITING, waiting.toString());
    }
    Process process = builder.start();
    started.put(process, new Started(local, System.nanoTime(), joins, waiting));
    synchronized (processes) {
      processes.add(process);
    }
    copy(rank, process.getInputStream(), System.out);
    copy(rank, process.getErrorStream(), System.err);
    return process;
  }

  private static Path waitingFile() throws IOException {
    try {
      return new TemporaryFiles("rank").createFile(".waiting");
    } catch (IOException e) {
      throw new IOException("no temporary file can be made: " + e + ", " + Scratch.advice(), e);
    }
  }

  /** Copies whole lines. The bytes of any charset pass through unchanged. */
  private void copy(int rank, InputStream in, PrintStream to) {
    PrintStream out = new PrintStream(to, false, StandardCharsets.ISO_8859_1);
    String tag = PrefixedOutput.HYDRA_PATTERN.replace("%r", Integer.toString(rank));
    Thread thread =
        new Thread(
            () -> {
              try (BufferedReader lines =
                  new BufferedReader(new InputStreamReader(in, StandardCharsets.ISO_8859_1))) {
                for (String line = PrefixedOutput.readLine(lines);
                    line != null;
                    line = PrefixedOutput.readLine(lines)) {
                  synchronized (to) { // whole lines of all ranks
                    out.print(tag + line + "\n");
                    out.flush();
                  }
                }
              } catch (IOException e) {
                out.flush(); // the rank has been ended
              }
            },
            "output-" + rank);
    thread.setDaemon(true);
    thread.start();
    outputs.add(thread);
  }

  private List<Process> running() {
    synchronized (processes) {
      return processes.stream().filter(Process::isAlive).toList();
    }
  }

  /** Sends the ranks that run a signal. */
  void forward(String signal) {
    for (Process process : running()) {
      ChildProcess.ask("sh", "-c", "kill -" + signal + " " + process.pid());
    }
  }

  /** Ends the ranks that run, by SIGTERM at first. */
  private void end() {
    ending = true;
    running().forEach(process -> process.toHandle().destroy()); // keeps what it still prints
    long start = System.nanoTime();
    try {
      while (!running().isEmpty()
          && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS)) {
        Thread.sleep(20);
      }
      running().forEach(Process::destroyForcibly);
      for (Thread output : outputs) {
        output.join(TimeUnit.SECONDS.toMillis(2)); // what a rank has left behind may keep it open
      }
    } catch (InterruptedException e) {
      running().forEach(Process::destroyForcibly);
      Thread.currentThread().interrupt();
    }
    if (watch != null) {
      watch.destroyForcibly();
    }
  }
}
