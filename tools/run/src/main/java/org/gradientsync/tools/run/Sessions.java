package org.gradientsync.tools.run;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.gradientsync.tools.program.ChildProcess;

/**
 * Starts processes in sessions of their own, so that Ctrl-C, which a terminal sends to a whole
 * process group, reaches them only through this process: mpirun leaves ranks and files behind when
 * it gets a second signal. It also does when it writes to this process after its end.
 */
final class Sessions {
  private static final List<String> ALONE =
      List.of("sh", "-c", "trap '' PIPE; exec $(command -v setsid) \"$@\"", "sh");

  /**
   * Reads lines of targets for {@code kill}, and ends those of the last one at the end: sessions as
   * processes where there are none.
   */
  private static final String WATCH =
      ("while read -r line; do targets=$line; done;"
          + " command -v setsid >&2 || targets=$(echo $targets | tr -d -); kill -TERM $targets;"
          + (" for i in $(seq " + RankLaunch.PATIENCE_SECONDS + "); do for one in $targets;")
          + " do kill -0 $one && sleep 1 && break; done; done; kill -KILL $targets");

  private static final long OUTPUT_MILLIS = 2_000; // for all

  private Sessions() {}

  static ProcessBuilder of(List<String> command) {
    List<String> words = new ArrayList<>(ALONE);
    words.addAll(command);
    return new ProcessBuilder(words);
  }

  /** Starts a process that ends others when this one, which holds a pipe to it, is killed. */
  static Process startWatch() throws IOException {
    return of(List.of("sh", "-c", WATCH))
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  /**
   * Says what a watch ends from now on.
   *
   * @param targets numbers of processes, and of sessions with a minus before
   */
  static void watch(Process watch, String targets) {
    try {
      OutputStream out = watch.getOutputStream();
      out.write((targets + "\n").getBytes(StandardCharsets.US_ASCII));
      out.flush();
    } catch (IOException e) {
      // a scheduler has ended it, and ends the others, too
    }
  }

  /** Waits for processes that are to end, kills those that do not in time, and waits for output. */
  static void awaitEnd(Collection<Process> processes, long seconds, Collection<LineCopy> outputs) {
    long start = System.nanoTime();
    try {
      for (Process process : processes) {
        long left = TimeUnit.SECONDS.toNanos(seconds) - (System.nanoTime() - start);
        process.waitFor(left, TimeUnit.NANOSECONDS);
      }
      killThoseThatRun(processes);
      long ended = System.nanoTime();
      for (LineCopy output : outputs) { // what a process has left may keep it open
        long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - ended);
        output.join(Math.max(1, OUTPUT_MILLIS - waited));
      }
    } catch (InterruptedException e) {
      killThoseThatRun(processes);
      Thread.currentThread().interrupt();
    }
  }

  /** Not the others: that would drop what they have printed last. */
  private static void killThoseThatRun(Collection<Process> processes) {
    processes.stream().filter(Process::isAlive).forEach(Process::destroyForcibly);
  }

  static void signal(Process process, String signal) {
    ChildProcess.ask("sh", "-c", "kill -" + signal + " " + process.pid());
  }
}
