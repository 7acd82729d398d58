package org.gradientsync.tools.run;

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Starts the ranks of one host for a launcher on another one, which writes to the standard input:
 * at first the ranks' variables, the secret among them, so that no list of processes shows them;
 * then the names of signals to pass on. The end of the input ends the ranks: the launcher, or the
 * connection to it, has ended.
 */
public final class RemoteNode {
  /** The first line of the standard output, for the launcher. */
  static final String STARTED = "gradient-sync: started";

  private RemoteNode() {}

  /**
   * Runs the ranks of this host, and ends the JVM.
   *
   * @param args the number of ranks, the first rank of this host, how many it has, the master,
   *     whether the job is elastic, whether these ranks join it, and the command of a rank
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    RanksAsProcesses.Share share =
        new RanksAsProcesses.Share(
            Integer.parseInt(args[0]),
            Integer.parseInt(args[1]),
            Integer.parseInt(args[2]),
            args[3],
            Boolean.parseBoolean(args[4]),
            Boolean.parseBoolean(args[5]));
    RankLaunch ranks =
        new RanksAsProcesses(
            share,
            read(in),
            List.of(Arrays.copyOfRange(args, 6, args.length)),
            rank -> PrefixedOutput.HYDRA_PATTERN.replace("%r", Integer.toString(rank)),
            RanksAsProcesses.NO_INPUT);
    JobRunner runner = new JobRunner();
    System.out.println(STARTED);
    Thread watch = new Thread(() -> follow(in, runner), "launcher");
    watch.setDaemon(true);
    watch.start();
    int code = runner.ownCode(runner.run(ranks));
    System.exit(code == RanksOverSsh.SSH_FAILED ? 1 : code);
  }

  private static void follow(BufferedReader in, JobRunner runner) {
    try {
      for (String signal = in.readLine(); signal != null; signal = in.readLine()) {
        if (signal.equals(JobRunner.TERM)) {
          runner.terminate();
        } else if (JobRunner.FORWARDED.contains(signal)) {
          runner.forward(signal);
        }
      }
    } catch (IOException e) {
      // as the end
    }
    System.exit(ExitCode.TERMINATED);
  }

  /** Writes variables as {@link #main} reads them. */
  static void write(Map<String, String> variables, OutputStream out) throws IOException {
    StringBuilder lines = new StringBuilder();
    variables.forEach((name, value) -> lines.append(encoded(name + "=" + value)).append('\n'));
    out.write(lines.append('\n').toString().getBytes(StandardCharsets.US_ASCII));
    out.flush();
  }

  /** Values may have lines of their own. */
  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  static Map<String, String> read(BufferedReader in) throws IOException {
    Map<String, String> variables = new LinkedHashMap<>();
    for (String line = in.readLine(); ; line = in.readLine()) {
      if (line == null) {
        throw new EOFException("the launcher has ended before it had sent the ranks' variables");
      }
      if (line.isEmpty()) {
        return variables;
      }
      String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
      String[] parts = text.split("=", 2);
      variables.put(parts[0], parts[1]);
    }
  }
}
