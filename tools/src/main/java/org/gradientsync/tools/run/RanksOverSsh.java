package org.gradientsync.tools.run;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.gradientsync.core.backend.Signals;

/**
 * The launcher of ranks on several hosts that find each other over TCP: starts a {@link RemoteNode}
 * on each host by {@code ssh}, in the folder of the same name. When one of them fails, it waits a
 * moment for the others, ends them, and exits with the code that says most of the failure. In an
 * elastic job the ranks of a host that is lost are started on another one, to join the others.
 */
public final class RanksOverSsh {
  private static final String NONE = "-";
  private static final int FIRST_PORT = 20_000;
  private static final int PORTS = 12_000; // below those that systems give to connections
  private static final long REPORT_SECONDS = 25; // a host waits for its own ranks before
  private static final long PATIENCE_SECONDS = 15;

  /** The exit code of ssh if it cannot connect, or not any more. */
  static final int SSH_FAILED = 255;

  private static final int CANNOT_RUN = 3;
  private static final int TERMINATED = 128 + 15;

  /** A host, the ssh to it, and the ranks that it runs. */
  private static final class Node {
    private final String host;
    private final int first;
    private final int count;
    private final boolean joins;
    private final Process ssh;
    private volatile boolean started; // its ranks may run

    Node(String host, int first, int count, boolean joins, Process ssh) {
      this.host = host;
      this.first = first;
      this.count = count;
      this.joins = joins;
      this.ssh = ssh;
    }
  }

  private final int size;
  private final boolean elastic;
  private final Map<String, Integer> hosts;
  private final String master;
  private final Map<String, String> variables;
  private final List<String> java;
  private final List<String> command;
  private final List<Node> nodes = new ArrayList<>();
  private final List<Thread> outputs = new CopyOnWriteArrayList<>();
  private volatile boolean ending;

  private RanksOverSsh(
      Map<String, Integer> hosts,
      String master,
      boolean elastic,
      Map<String, String> variables,
      List<String> java,
      List<String> command) {
    this.hosts = hosts;
    size = hosts.values().stream().mapToInt(Integer::intValue).sum();
    this.master = master;
    this.elastic = elastic;
    this.variables = variables;
    this.java = java;
    this.command = command;
  }

  /**
   * The arguments of {@link #main}.
   *
   * @param hosts how many ranks each has
   * @param master where rank 0 listens, or null for a port of the first host
   * @param elastic whether the others go on when a rank is lost
   * @param names environment variables for the ranks
   * @param java how to start a class of this command on a host
   * @param command the command of a rank
   */
  static List<String> arguments(
      Map<String, Integer> hosts,
      String master,
      boolean elastic,
      List<String> names,
      List<String> java,
      List<String> command) {
    List<String> arguments = new ArrayList<>();
    arguments.add(
        hosts.entrySet().stream()
            .map(host -> host.getKey() + ":" + host.getValue())
            .collect(Collectors.joining(",")));
    arguments.add(master == null ? NONE : master);
    arguments.add(Boolean.toString(elastic));
    arguments.add(names.isEmpty() ? NONE : String.join(",", names));
    arguments.add(Integer.toString(java.size()));
    arguments.addAll(java);
    arguments.addAll(command);
    return arguments;
  }

  /**
   * Runs the job, and ends the JVM.
   *
   * @param args as {@link #arguments} makes them
   */
  public static void main(String[] args) throws InterruptedException {
    Map<String, Integer> hosts = Hosts.parse(args[0]).slots();
    String master = args[1];
    if (master.equals(NONE)) {
      int port = FIRST_PORT + new SecureRandom().nextInt(PORTS);
      master = hosts.keySet().iterator().next() + ":" + port;
    }
    Map<String, String> variables = new LinkedHashMap<>();
    for (String name : args[3].split(",")) {
      String value = System.getenv(name);
      if (value != null) {
        variables.put(name, value);
      }
    }
    String secret = System.getenv(RanksAsProcesses.SECRET);
    variables.put(
        RanksAsProcesses.SECRET,
        secret == null || secret.isBlank() ? RanksAsProcesses.newSecret() : secret);
    int command = 5 + Integer.parseInt(args[4]);
    List<String> java = List.of(Arrays.copyOfRange(args, 5, command));
    List<String> rank = List.of(Arrays.copyOfRange(args, command, args.length));
    boolean elastic = Boolean.parseBoolean(args[2]);
    System.exit(new RanksOverSsh(hosts, master, elastic, variables, java, rank).run());
  }

  private int run() throws InterruptedException {
    BlockingQueue<Node> ended = new LinkedBlockingQueue<>();
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
    try {
      for (String name : RanksAsProcesses.FORWARDED) {
        Signals.handle(name, () -> write(name + "\n"));
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e);
    }
    int first = 0;
    for (Map.Entry<String, Integer> host : hosts.entrySet()) {
      try {
        start(host.getKey(), first, host.getValue(), false, ended);
      } catch (IOException e) {
        say("ssh cannot be started: " + e.getMessage() + "; install an ssh client");
        return CANNOT_RUN;
      }
      first += host.getValue();
    }
    int failure = elastic ? awaitElastic(ended) : await(ended);
    end();
    for (Thread output : outputs) {
      output.join(TimeUnit.SECONDS.toMillis(2));
    }
    return failure;
  }

  /** Waits until all have ended, or one has failed. */
  private int await(BlockingQueue<Node> ended) throws InterruptedException {
    int failure = 0;
    for (int running = hosts.size(); running > 0; running--) {
      Node node = failure == 0 ? ended.take() : ended.poll(REPORT_SECONDS, TimeUnit.SECONDS);
      if (node == null) {
        break; // the others do not end by themselves
      }
      int code = codeOf(node);
      code = code == SSH_FAILED && node.started ? ExitCode.RANK_LOST : code;
      failure = weight(code) > weight(failure) ? code : failure;
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
      if (!node.started && !node.joins) {
        return code; // it has never been there
      }
      boolean lost =
          code == SSH_FAILED
              || code != TERMINATED && code != ExitCode.RANK_LOST && ExitCode.tellsOfLostRank(code);
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
    if (lost.host.equals(hosts.keySet().iterator().next())) {
      say(what + "; its ranks are not started again, because ranks join at the first host");
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

  private static int codeOf(Node node) {
    int code = node.ssh.exitValue();
    if (code == SSH_FAILED) {
      say(
          "no host, or no connection to it any more: host="
              + node.host
              + ", exit code of ssh=255; try: ssh "
              + node.host
              + " true");
    }
    return code;
  }

  /** Ranks that end because of another one have codes that say less than that one's. */
  private static int weight(int code) {
    return switch (code) {
      case 0 -> 0;
      case TERMINATED -> 1;
      case ExitCode.RANK_LOST -> 2;
      default -> 3;
    };
  }

  private static void say(String sentence) {
    System.err.println("gradient-sync run: " + sentence);
  }

  private void start(String host, int first, int count, boolean joins, BlockingQueue<Node> ended)
      throws IOException {
    List<String> words = new ArrayList<>(java);
    words.add(RemoteNode.class.getName());
    words.addAll(List.of("" + size, "" + first, "" + count, master, "" + elastic, "" + joins));
    words.addAll(command);
    String line = words.stream().map(RanksOverSsh::quoted).collect(Collectors.joining(" "));
    String folder = Path.of("").toAbsolutePath().toString();
    List<String> remote = new ArrayList<>(List.of("ssh", "-T", "-o", "BatchMode=yes"));
    if (elastic) {
      remote.addAll(List.of("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"));
    }
    remote.addAll(List.of(host, "cd " + quoted(folder) + " && exec " + line));
    Process ssh = new ProcessBuilder(remote).start();
    Node node = new Node(host, first, count, joins, ssh);
    synchronized (nodes) {
      nodes.add(node);
    }
    copy(node, ssh.getInputStream(), System.out);
    copy(node, ssh.getErrorStream(), System.err);
    try {
      RemoteNode.write(variables, ssh.getOutputStream());
    } catch (IOException e) {
      // it has ended, and its exit code says more
    }
    ssh.onExit().thenAccept(process -> ended.add(node));
  }

  /** Quotes a word for any shell. */
  private static String quoted(String word) {
    return "'" + word.replace("'", "'\\''") + "'";
  }

  /** Copies whole lines: those of ranks as they are, others with their host. */
  private void copy(Node node, InputStream in, PrintStream to) {
    PrintStream out = new PrintStream(to, false, StandardCharsets.ISO_8859_1);
    String ofRank = PrefixedOutput.HYDRA_PATTERN.split("%r")[0];
    Thread thread =
        new Thread(
            () -> {
              try (BufferedReader lines =
                  new BufferedReader(new InputStreamReader(in, StandardCharsets.ISO_8859_1))) {
                for (String line = PrefixedOutput.readLine(lines);
                    line != null;
                    line = PrefixedOutput.readLine(lines)) {
                  if (line.endsWith(RemoteNode.STARTED)) { // behind what a login script prints
                    node.started = true;
                    continue;
                  }
                  synchronized (to) { // whole lines of all hosts
                    out.print((line.startsWith(ofRank) ? "" : node.host + ": ") + line + "\n");
                    out.flush();
                  }
                }
              } catch (IOException e) {
                out.flush(); // the connection has ended
              }
            },
            "output-" + node.host);
    thread.setDaemon(true);
    thread.start();
    outputs.add(thread);
  }

  private List<Node> running() {
    synchronized (nodes) {
      return nodes.stream().filter(node -> node.ssh.isAlive()).toList();
    }
  }

  private void write(String text) {
    for (Node node : running()) {
      try {
        OutputStream out = node.ssh.getOutputStream();
        out.write(text.getBytes(StandardCharsets.US_ASCII));
        out.flush();
      } catch (IOException e) {
        // it is about to end
      }
    }
  }

  /** Ends the hosts that run, by the end of their input at first. */
  private void end() {
    ending = true;
    for (Node node : running()) {
      try {
        node.ssh.getOutputStream().close();
      } catch (IOException e) {
        // it is about to end
      }
    }
    long start = System.nanoTime();
    try {
      while (!running().isEmpty()
          && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS)) {
        Thread.sleep(20);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    running().forEach(node -> node.ssh.destroyForcibly());
  }
}
