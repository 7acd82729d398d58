package org.gradientsync.tools.run;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.gradientsync.core.backend.TemporaryFiles;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.Scratch;

/**
 * Ranks of one node that find each other over TCP, with the variables that gradient-sync-tcp reads.
 * When a rank fails, the job waits a moment for the others, which report that, ends them, and has
 * that rank's code.
 */
final class RanksAsProcesses implements RankLaunch {
  /** The variable with the job's secret. */
  static final String SECRET = "GRADIENTSYNC_SECRET";

  private static final String JOIN = "GRADIENTSYNC_JOIN";

  /** What mpirun and srun say to this process, which they may have started on each node. */
  private static final Pattern OF_MPI = Pattern.compile("OMPI_COMM_WORLD_|PMIX?_");

  /** The losses of one rank, each soon after its start, after which it is not started again. */
  static final int MOST_LOSSES = 5;

  private static final long LONG_NANOS = 120_000_000_000L;
  private static final int SECRET_BYTES = 32;
  private static final int MAX_PORTS = 100; // to try

  /** Ports from here on, as many as {@link #PORTS}, are given by no system to who asks for any. */
  static final int FIRST_PORT = 20_000;

  static final int PORTS = 12_000;
  private static final long REPORT_SECONDS = 10;

  static final Redirect NO_INPUT = Redirect.from(new File("/dev/null"));

  /**
   * The ranks of one node.
   *
   * @param size the number of ranks of all nodes
   * @param first the first one of this node
   * @param count how many this node has
   * @param master where rank 0 listens, {@code host:port}, or null for a free port of this machine
   * @param elastic whether the others go on when a rank is lost, and it is started again to join
   *     them
   * @param joins whether the ranks join a job that has begun
   */
  record Share(int size, int first, int count, String master, boolean elastic, boolean joins) {}

  /**
   * A process that runs.
   *
   * @param needsSync whether it has begun when it has its first sync, and not when it has met the
   *     others: a loss in between ends all of them
   * @param joins a job that has begun
   * @param waiting an empty file that the rank deletes when it has a sync, makes again when it
   *     leaves, and writes when too few ranks have waited for others for as long as they may
   */
  private record Started(int local, long nanos, boolean needsSync, boolean joins, Path waiting) {
    boolean takesPart() {
      return hasSync() || Files.exists(WaitingFile.met(waiting));
    }

    private boolean hasSync() {
      return !Files.exists(waiting) || hasGivenUp();
    }

    boolean hasBegun() {
      return needsSync ? hasSync() : takesPart();
    }

    boolean hasGivenUp() {
      return waiting.toFile().length() > 0;
    }

    /** The processes that this rank goes on without. */
    List<Long> left() {
      try (Stream<String> lines = Files.lines(WaitingFile.left(waiting))) {
        return lines.map(Long::valueOf).toList();
      } catch (IOException | UncheckedIOException | NumberFormatException e) {
        return List.of(); // there are none, or it is being written
      }
    }
  }

  private final Share share;
  private final Map<String, String> variables;
  private final List<String> command;
  private final IntFunction<String> tag;
  private final Redirect input;
  private volatile boolean ending;
  private volatile Process watch;
  private final Map<Process, Started> started = new ConcurrentHashMap<>();
  private final List<LineCopy> outputs = new CopyOnWriteArrayList<>();

  // Of an elastic job.
  private boolean hasBegun;
  private final Map<Integer, Integer> lost = new TreeMap<>(); // to start again, with exit codes
  private final Set<Long> left = new HashSet<>(); // processes that the other ranks go on without
  private final Map<Process, Long> asked = new HashMap<>(); // those that are to end, since when

  /**
   * Creates a job that has not begun.
   *
   * @param variables what ranks have in their environment beyond that of this process
   * @param command the command of a rank
   * @param tag returns what begins the lines of a rank
   * @param input what rank 0 reads
   */
  RanksAsProcesses(
      Share share,
      Map<String, String> variables,
      List<String> command,
      IntFunction<String> tag,
      Redirect input) {
    this.share = share;
    this.variables = new HashMap<>(variables);
    this.command = command;
    this.tag = tag;
    this.input = input;
  }

  static String newSecret() {
    byte[] random = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(random);
    return HexFormat.of().formatHex(random);
  }

  @Override
  public int run() throws InterruptedException {
    try {
      return runAll();
    } catch (IOException e) {
      end();
      System.err.println("gradient-sync run: a rank cannot be started: " + e.getMessage());
      return Program.CANNOT_RUN;
    }
  }

  /** A port at which nobody listens. Rank 0 will a little later. */
  static int freePort() throws IOException {
    for (int attempts = 1; ; attempts++) {
      int port = FIRST_PORT + ThreadLocalRandom.current().nextInt(PORTS);
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return socket.getLocalPort();
      } catch (BindException e) {
        if (attempts == MAX_PORTS) {
          throw e;
        }
      }
    }
  }

  private int runAll() throws IOException, InterruptedException {
    String master = share.master();
    if (master == null) {
      master = "127.0.0.1:" + freePort();
    }
    int colon = master.lastIndexOf(':');
    variables.put("MASTER_ADDR", master.substring(0, colon));
    variables.put("MASTER_PORT", master.substring(colon + 1));
    if (share.size() == share.count() && System.getenv().getOrDefault(SECRET, "").isBlank()) {
      variables.putIfAbsent(SECRET, newSecret());
    }
    watch = Sessions.startWatch();
    BlockingQueue<Process> ended = new LinkedBlockingQueue<>();
    for (int local = 0; local < share.count(); local++) {
      start(local, share.joins()).onExit().thenAccept(ended::add);
    }
    int failure = share.elastic() ? awaitElastic(ended) : await(ended);
    end();
    return failure;
  }

  /** Waits until all have ended, or one has failed. */
  private int await(BlockingQueue<Process> ended) throws InterruptedException {
    int failure = 0;
    for (int running = share.count(); running > 0; running--) {
      Process process =
          failure == 0 || ending ? ended.take() : ended.poll(REPORT_SECONDS, TimeUnit.SECONDS);
      if (process == null) { // the others do not end by themselves
        System.err.println(
            "gradient-sync: a rank has ended (exit code "
                + failure
                + "), and those that still run are ended; with --min-np they could go on");
        break;
      }
      watchRunning();
      int code = process.exitValue();
      // A rank that aborts the job ends the others by SIGTERM, and its own code says more.
      failure = failure == 0 || failure == ExitCode.TERMINATED && code != 0 ? code : failure;
    }
    return failure;
  }

  /**
   * Waits until all have ended, and starts those again that are lost, as long as there are others.
   * One that fails by itself would fail again. Returns the code of the last that took part.
   */
  private int awaitElastic(BlockingQueue<Process> ended) throws InterruptedException {
    int[] losses = new int[share.count()]; // each soon after a start
    hasBegun = share.joins();
    long lastDone = System.nanoTime();
    int ofNobody = share.joins() ? ExitCode.RANK_LOST : 0; // if none ends that took part
    int result = ofNobody;
    while (!started.isEmpty()) {
      Process process = nextEnded(ended);
      watchRunning();
      int code = process.exitValue();
      Started rank = started.remove(process);
      boolean othersTakePart = started.values().stream().anyMatch(Started::takesPart);
      hasBegun |= rank.hasBegun() || started.values().stream().anyMatch(Started::hasBegun);
      boolean cameTooLate =
          code == ExitCode.RANK_LOST
              && rank.joins()
              && (!rank.takesPart() || lastDone - rank.nanos() > 0);
      boolean isLeft = asked.containsKey(process) || left.contains(process.pid());
      boolean hasLeft = code == 0 && !rank.takesPart(); // on purpose, before the others' end
      result = cameTooLate || isLeft || hasLeft && result != ofNobody ? result : code;
      lastDone = code == 0 && !hasLeft ? System.nanoTime() : lastDone;
      boolean ranLong = System.nanoTime() - rank.nanos() > LONG_NANOS;
      losses[rank.local()] = ranLong ? 1 : losses[rank.local()] + 1;
      boolean isLost = ExitCode.tellsOfLostRank(code) && losses[rank.local()] <= MOST_LOSSES;
      if (ending) {
        continue;
      }
      String name = "gradient-sync: rank " + (share.first() + rank.local());
      boolean cameAlone = code == ExitCode.RANK_LOST && !rank.takesPart();
      if (!hasBegun && code != 0 && (!isLost || cameAlone)) {
        System.err.println(
            name + " has ended before all ranks had begun (exit code " + code + "); the job ends");
        return code;
      }
      boolean nobodyIsLeft = share.size() == share.count() || rank.hasGivenUp();
      if (hasBegun && !othersTakePart && nobodyIsLeft) {
        return result; // those that wait would join nobody
      }
      if (rank.hasGivenUp()) {
        continue; // as all others do, on all nodes
      }
      if (hasBegun && !othersTakePart && rank.joins() && cameAlone) {
        continue; // the ranks of the other nodes have ended, too
      }
      if (ExitCode.tellsOfLostRank(code) && !isLost) {
        System.err.println(
            "%s was lost (%s) %s times, each soon after its start; it is not started again"
                .formatted(name, ExitCode.meaning(code), losses[rank.local()]));
      }
      if (isLost) {
        lost.put(rank.local(), code);
      }
      startLost(ended);
    }
    return result;
  }

  /** Starts lost ranks again: to join the others, or once those have ended that have met them. */
  private void startLost(BlockingQueue<Process> ended) {
    hasBegun |= started.values().stream().anyMatch(Started::hasBegun);
    if (ending || !hasBegun && started.values().stream().anyMatch(Started::takesPart)) {
      return;
    }
    lost.forEach(
        (local, code) -> {
          String name = "gradient-sync: rank " + (share.first() + local);
          System.err.println(
              name
                  + " was lost ("
                  + ExitCode.meaning(code)
                  + (hasBegun
                      ? "); it is started again to join the others"
                      : ") before all ranks had begun; it is started again"));
          try {
            start(local, hasBegun).onExit().thenAccept(ended::add);
          } catch (IOException e) {
            System.err.println(name + " cannot be started again: " + e.getMessage());
          }
        });
    lost.clear();
  }

  /** Waits for the end of a rank. Ends those that the others go on without: they may hang. */
  private Process nextEnded(BlockingQueue<Process> ended) throws InterruptedException {
    while (true) {
      Process process = ended.poll(1, TimeUnit.SECONDS);
      started.values().forEach(rank -> left.addAll(rank.left()));
      if (process != null) {
        return process;
      }
      startLost(ended);
      for (Process one : left.isEmpty() ? List.<Process>of() : running()) {
        processes(one).filter(handle -> left.contains(handle.pid())).forEach(h -> endLeft(one, h));
      }
    }
  }

  /** A rank's process, and those that it has started: the command may be a script. */
  private static Stream<ProcessHandle> processes(Process rank) {
    return Stream.concat(Stream.of(rank.toHandle()), rank.descendants());
  }

  private void endLeft(Process process, ProcessHandle handle) {
    Long since = asked.putIfAbsent(process, System.nanoTime());
    if (since == null) {
      int rank = share.first() + started.get(process).local();
      System.err.println(
          "gradient-sync: the other ranks go on without rank " + rank + ", which is ended");
      handle.destroy();
    } else if (System.nanoTime() - since > TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS)) {
      handle.destroyForcibly();
    }
  }

  private Process start(int local, boolean joins) throws IOException {
    int rank = share.first() + local;
    ProcessBuilder builder = Sessions.of(command);
    builder.redirectInput(rank == 0 ? input : NO_INPUT);
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> OF_MPI.matcher(name).lookingAt());
    environment.putAll(variables);
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(share.size()));
    environment.put("LOCAL_RANK", Integer.toString(local));
    environment.put("LOCAL_WORLD_SIZE", Integer.toString(share.count()));
    if (joins) {
      environment.put(JOIN, "true");
    }
    Path waiting = null;
    if (share.elastic()) {
      waiting = waitingFile();
      waiting.toFile().deleteOnExit();
      WaitingFile.met(waiting).toFile().deleteOnExit();
      WaitingFile.left(waiting).toFile().deleteOnExit();
      environment.put(WaitingFile.VARIABLE, waiting.toString());
    }
    boolean needsSync = !joins && share.size() == share.count(); // other nodes see other ends
    Process process = builder.start();
    started.put(process, new Started(local, System.nanoTime(), needsSync, joins, waiting));
    String begin = tag.apply(rank);
    outputs.addAll(LineCopy.of(process, line -> begin + line));
    watchRunning();
    if (ending) {
      terminate(); // while it was being started
    }
    return process;
  }

  /** Lets the ranks that run, with what they have started, end with this process. */
  private void watchRunning() {
    Sessions.watch(
        watch, running().stream().map(each -> "-" + each.pid()).collect(Collectors.joining(" ")));
  }

  private static Path waitingFile() throws IOException {
    try {
      return new TemporaryFiles("rank").createFile(".waiting");
    } catch (IOException e) {
      throw new IOException("no temporary file can be made: " + e + ", " + Scratch.advice(), e);
    }
  }

  private List<Process> running() {
    return started.keySet().stream().filter(Process::isAlive).toList();
  }

  @Override
  public void forward(String signal) {
    running().forEach(process -> Sessions.signal(process, signal));
  }

  @Override
  public void terminate() {
    ending = true;
    running().forEach(process -> process.toHandle().destroy()); // keeps what it still prints
  }

  /** Ends the ranks that run, by SIGTERM at first. */
  @Override
  public void end() {
    List<Process> running = running();
    terminate();
    Sessions.awaitEnd(running, PATIENCE_SECONDS, outputs);
    outputs.clear();
    if (watch != null) {
      watch.destroyForcibly();
    }
  }
}
