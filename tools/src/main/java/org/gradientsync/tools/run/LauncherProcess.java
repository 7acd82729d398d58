package org.gradientsync.tools.run;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.tools.ToolException;
import org.gradientsync.tools.program.ChildProcess;

/** Runs a plan to its end. If this process is ended, it ends the job, too. */
final class LauncherProcess {
  private static final long PATIENCE_SECONDS = RanksAsProcesses.PATIENCE_SECONDS + 2;

  /** A scheduler signals the processes of a job one by one, and the launcher may end first. */
  private static final long SIGNALS_APART_SECONDS = 1;

  /**
   * Starts the launcher in a session of its own, so that Ctrl-C, which a terminal sends to a whole
   * process group, reaches it only through this process: mpirun leaves ranks and files behind when
   * it gets a second signal. It also does when it writes to this process after its end.
   */
  private static final List<String> ALONE =
      List.of("sh", "-c", "trap '' PIPE; exec $(command -v setsid) \"$@\"", "sh");

  private final LaunchPlan plan;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Process process;
  private volatile PrefixedOutput out;
  private volatile PrefixedOutput err;

  LauncherProcess(LaunchPlan plan) {
    this.plan = plan;
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
    try {
      for (String name : List.of("USR1", "USR2")) { // which otherwise end or crash a JVM
        Signals.handle(name, () -> forward(name));
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("signals cannot be handled: " + e, e);
    }
  }

  /** Returns whether this process is being ended. */
  boolean isEnded() {
    return ended.getCount() == 0;
  }

  /** Returns whether this process, whose launcher has been ended, is being ended with it. */
  boolean isEndedSoon() throws InterruptedException {
    return ended.await(SIGNALS_APART_SECONDS, TimeUnit.SECONDS);
  }

  /** Starts the job, waits for its end, and returns its exit code. */
  int run() throws InterruptedException {
    Process started;
    Process watch;
    try {
      started = start(plan.command(), ProcessBuilder.Redirect.INHERIT, plan.environment());
      process = started;
      watch = startWatch(started);
    } catch (IOException e) {
      throw ToolException.cannotRun("the launcher cannot be started: %s", e.getMessage());
    }
    if (isEnded()) {
      end(); // while it was being started
    }
    ExitCode code = new ExitCode();
    Refusal refusal = new Refusal();
    Consumer<String> reader =
        line -> {
          code.read(line);
          refusal.read(line);
        };
    out =
        new PrefixedOutput(
            started.getInputStream(), new FileOutputStream(FileDescriptor.out), plan, reader);
    err =
        new PrefixedOutput(
            started.getErrorStream(), new FileOutputStream(FileDescriptor.err), plan, reader);
    out.start();
    err.start();
    int launchersCode = started.waitFor();
    watch.destroyForcibly();
    out.awaitEnd();
    err.awaitEnd();
    if (launchersCode != 0 && refusal.sentence().isPresent()) {
      throw ToolException.cannotRun("%s", refusal.sentence().get());
    }
    return code.of(launchersCode);
  }

  private static Process start(
      List<String> command, ProcessBuilder.Redirect in, Map<String, String> environment)
      throws IOException {
    List<String> words = new ArrayList<>(ALONE);
    words.addAll(command);
    ProcessBuilder builder = new ProcessBuilder(words).redirectInput(in);
    builder.environment().putAll(environment);
    return builder.start();
  }

  /** Starts a process that ends the launcher when this process, which holds a pipe to it, ends. */
  private static Process startWatch(Process launcher) throws IOException {
    return start(
        List.of("sh", "-c", "read line; kill -TERM " + launcher.pid()),
        ProcessBuilder.Redirect.PIPE,
        Map.of());
  }

  /** Sends the launcher a signal, which it passes on to its ranks. */
  private void forward(String signal) {
    Process running = process;
    if (running != null && running.isAlive()) {
      ChildProcess.ask("sh", "-c", "kill -" + signal + " " + running.pid());
    }
  }

  /** Ends the launcher, which ends its ranks. */
  private void end() {
    ended.countDown();
    Process running = process;
    if (running == null || !running.isAlive()) {
      return;
    }
    running.toHandle().destroy(); // Process.destroy would drop what it still prints
    try {
      if (!running.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        running.descendants().forEach(ProcessHandle::destroyForcibly);
        running.destroyForcibly();
      }
      for (PrefixedOutput output : new PrefixedOutput[] {out, err}) {
        if (output != null) {
          output.awaitEnd(); // the last lines say why
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
