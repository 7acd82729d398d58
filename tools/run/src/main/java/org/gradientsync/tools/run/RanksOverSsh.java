package org.gradientsync.tools.run;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.stream.Collectors;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.ToolException;

/**
 * Ranks on several hosts that find each other over TCP: starts a {@link RemoteNode} on each host by
 * {@code ssh}, in the folder of the same name. When one of them fails, the job waits a moment for
 * the others, ends them, and has the code that says most of the failure. In an elastic job the
 * ranks of a host that is lost are started on another one, to join the others.
 */
final class RanksOverSsh implements RankLaunch {
  private static final long REPORT_SECONDS = 25; // a host waits for its own ranks before
  private static final long START_SECONDS = 2; // after a host where nothing has started
  private static final long HOST_PATIENCE_SECONDS = PATIENCE_SECONDS + 5;
  private static final long OUTPUT_MILLIS = 1_000;

  /** Where ranks of an elastic job may be joined, should the first host be lost. */
  private static final String HOSTS = "GRADIENTSYNC_HOSTS";

  /** The exit code of ssh if it cannot connect, or not any more. */
  static final int SSH_FAILED = 255;

  /** No collector, and a first heap: JAVA_TOOL_OPTIONS may name others. */
  private static final List<String> SMALL_JVM =
      List.of("-XX:TieredStopAtLevel=1", "-Xms8m", "-Xmx128m");

  /** A host, the ssh to it, the ranks that it runs, and whether they may run already. */
  private record Node(
      String host,
      int first,
      int count,
      boolean joins,
      Process ssh,
      AtomicBoolean started,
      List<LineCopy> outputs) {}

  private final int size;
  private final boolean elastic;
  private final Map<String, Integer> hosts;
  private final String master;
  private final Map<String, String> variables;
  private final LaunchPlan plan;
  private final List<String> java;
  private final List<Node> nodes = new CopyOnWriteArrayList<>();
  private final List<LineCopy> outputs = new CopyOnWriteArrayList<>();
  private volatile boolean ending;

  /**
   * Creates a job that has not begun.
   *
   * @param hosts how many ranks each has
   * @param master where rank 0 listens, or null for a port of the first host
   * @param elastic whether the others go on when a rank is lost
   * @param variables the ranks' environment
   * @param plan has the command of a rank
   * @param java the JVM of all hosts, and the class path of this command there
   */
  RanksOverSsh(
      Map<String, Integer> hosts,
      String master,
      boolean elastic,
      Map<String, String> variables,
      LaunchPlan plan,
      List<String> java) {
    this.hosts = hosts;
    size = hosts.values().stream().mapToInt(Integer::intValue).sum();
    int port = RanksAsProcesses.FIRST_PORT + new SecureRandom().nextInt(RanksAsProcesses.PORTS);
    String first = hosts.keySet().iterator().next();
    this.master = master == null ? withoutUser(first) + ":" + port : master;
    this.elastic = elastic;
    this.variables = new LinkedHashMap<>(variables);
    this.variables.putIfAbsent(RanksAsProcesses.SECRET, RanksAsProcesses.newSecret());
    this.variables.put(
        HOSTS,
        hosts.keySet().stream()
            .map(host -> Hosts.forSsh(withoutUser(host)))
            .collect(Collectors.joining(",")));
    this.plan = plan;
    this.java = java;
  }

  /** The user is ssh's matter alone. */
  private static String withoutUser(String host) {
    return host.substring(host.lastIndexOf('@') + 1);
  }

  @Override
  public int run() throws InterruptedException {
    BlockingQueue<Node> ended = new LinkedBlockingQueue<>();
    int first = 0;
    for (Map.Entry<String, Integer> host : hosts.entrySet()) {
      try {
        start(host.getKey(), first, host.getValue(), false, ended);
      } catch (IOException e) {
        end();
        throw ToolException.cannotRun(
            "ssh cannot be started: %s; install an ssh client", e.getMessage());
      }
      first += host.getValue();
    }
    int failure = elastic ? awaitElastic(ended) : await(ended);
    end();
    return failure;
  }

  /** Waits until all have ended, or one has failed. */
  private int await(BlockingQueue<Node> ended) throws InterruptedException {
    int failure = 0;
    long patience = REPORT_SECONDS;
    for (int running = hosts.size(); running > 0; running--) {
      Node node = failure == 0 || ending ? ended.take() : ended.poll(patience, TimeUnit.SECONDS);
      if (node == null) {
        break; // the others do not end by themselves
      }
      int code = codeOf(node);
      code = code == SSH_FAILED && node.started.get() ? ExitCode.RANK_LOST : code;
      failure = weight(code) > weight(failure) ? code : failure;
      patience = node.started.get() ? patience : START_SECONDS; // the others wait for it
    }
    return failure;
  }

  /**
   * Waits until all have ended. Returns the code of the last that was not lost, and whose ranks did
   * not come too late to join.
   */
  private int awaitElastic(BlockingQueue<Node> ended) throws InterruptedException {
    int result = ExitCode.RANK_LOST;
    int[] losses = new int[size]; // of the hosts with a first rank
    for (int running = hosts.size(); running > 0; running--) {
      Node node = ended.take();
      int code = codeOf(node);
      if (!node.started.get() && !node.joins) {
        return code; // it has never been there
      }
      boolean lost =
          code == SSH_FAILED
              || code != ExitCode.TERMINATED
                  && code != ExitCode.RANK_LOST
                  && ExitCode.tellsOfLostRank(code);
      boolean cameTooLate = node.joins && code == ExitCode.RANK_LOST;
      result = lost && !ending || cameTooLate ? result : code;
      if (lost
          && !ending
          && ++losses[node.first] <= RanksAsProcesses.MOST_LOSSES
          && replace(node, ended)) {
        running++;
      }
    }
    return result;
  }

  /**
   * Starts the ranks of a host that is lost on the one that has the fewest, if that is possible.
   */
  private boolean replace(Node lost, BlockingQueue<Node> ended) {
    Map<String, Integer> ranks = new LinkedHashMap<>();
    running().forEach(node -> ranks.merge(node.host, node.count, Integer::sum));
    String what = "host " + lost.host + " was lost";
    String next =
        ranks.entrySet().stream()
            .min(Map.Entry.comparingByValue())
            .map(Map.Entry::getKey)
            .orElse("");
    if (next.isEmpty()) {
      say(what + ", and no other host runs ranks");
      return false;
    }
    say(what + "; its ranks are started on " + next + " to join the others");
    try {
      start(next, lost.first, lost.count, true, ended);
      return true;
    } catch (IOException e) {
      say("ssh cannot be started: " + e.getMessage());
      return false;
    }
  }

  private static int codeOf(Node node) throws InterruptedException {
    int code = node.ssh.exitValue();
    for (LineCopy output : node.started.get() ? List.<LineCopy>of() : node.outputs) {
      output.join(OUTPUT_MILLIS); // it may say that they have started
    }
    if (code == 0 && !node.started.get()) {
      say(
          "ssh ended with 0, but has not started the ranks there: host="
              + node.host
              + "; see what the account may run, and try: ssh "
              + Hosts.forSsh(node.host)
              + " java -version");
      return Program.CANNOT_RUN;
    }
    if (code == SSH_FAILED) {
      say(
          ("no host, or no connection to it any more: host=%s, exit code of ssh=255;"
                  + " try: ssh %s true")
              .formatted(node.host, Hosts.forSsh(node.host)));
    }
    return code;
  }

  /** Ranks that end because of another one have codes that say less than that one's. */
  private static int weight(int code) {
    return switch (code) {
      case 0 -> 0;
      case ExitCode.TERMINATED -> 1;
      case ExitCode.RANK_LOST -> 2;
      default -> 3;
    };
  }

  private static void say(String sentence) {
    System.err.println("gradient-sync run: " + sentence);
  }

  private void start(String host, int first, int count, boolean joins, BlockingQueue<Node> ended)
      throws IOException {
    List<String> words = new ArrayList<>(List.of(java.get(0)));
    words.addAll(SMALL_JVM);
    words.addAll(java.subList(1, java.size()));
    words.add(RemoteNode.class.getName());
    words.addAll(List.of("" + size, "" + first, "" + count, master, "" + elastic, "" + joins));
    words.addAll(plan.command());
    String line = words.stream().map(RanksOverSsh::quoted).collect(Collectors.joining(" "));
    String folder = Path.of("").toAbsolutePath().toString();
    List<String> remote = new ArrayList<>(List.of("ssh", "-T", "-o", "BatchMode=yes"));
    if (elastic) {
      remote.addAll(List.of("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"));
    }
    remote.addAll(List.of(Hosts.forSsh(host), "cd " + quoted(folder) + " && exec " + line));
    Process ssh = Sessions.of(remote).start();
    AtomicBoolean started = new AtomicBoolean();
    List<LineCopy> copies = LineCopy.of(ssh, text -> shown(host, started, text));
    outputs.addAll(copies);
    Node node = new Node(host, first, count, joins, ssh, started, copies);
    nodes.add(node);
    try {
      RemoteNode.write(variables, ssh.getOutputStream());
    } catch (IOException e) {
      // it has ended, and its exit code says more
    }
    ssh.onExit().thenAccept(process -> ended.add(node));
    if (ending) {
      end(); // while it was being started
    }
  }

  /** Quotes a word for any shell. */
  private static String quoted(String word) {
    return "'" + word.replace("'", "'\\''") + "'";
  }

  /** Returns lines of ranks with the rank, and others with the host. */
  private String shown(String host, AtomicBoolean started, String line) {
    if (line.endsWith(RemoteNode.STARTED)) { // behind what a login script prints
      started.set(true);
      return null;
    }
    Matcher tag = PrefixedOutput.HYDRA.matcher(line);
    return tag.lookingAt()
        ? plan.prefix(Integer.parseInt(tag.group(1))) + line.substring(tag.end())
        : host + ": " + line;
  }

  private List<Node> running() {
    return nodes.stream().filter(node -> node.ssh.isAlive()).toList();
  }

  @Override
  public void forward(String signal) {
    for (Node node : running()) {
      try {
        OutputStream out = node.ssh.getOutputStream();
        out.write((signal + "\n").getBytes(StandardCharsets.US_ASCII));
        out.flush();
      } catch (IOException e) {
        // it is about to end
      }
    }
  }

  @Override
  public void terminate() {
    ending = true;
    forward(JobRunner.TERM);
  }

  /** Ends the hosts that run, by the end of their input at first. */
  @Override
  public void end() {
    ending = true;
    List<Node> running = running();
    for (Node node : running) {
      try {
        node.ssh.getOutputStream().close();
      } catch (IOException e) {
        // it is about to end
      }
    }
    Sessions.awaitEnd(running.stream().map(Node::ssh).toList(), HOST_PATIENCE_SECONDS, outputs);
  }
}
