package org.gradientsync.tools.run;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.gradientsync.tools.program.ToolException;

/** The job of a launcher that starts the ranks, or of one JVM that has them as threads. */
final class LauncherProcess implements RankLaunch {
  private final LaunchPlan plan;
  private volatile boolean ending;
  private volatile Process process;
  private volatile PrefixedOutput out;
  private volatile PrefixedOutput err;

  LauncherProcess(LaunchPlan plan) {
    this.plan = plan;
  }

  @Override
  public int run() throws InterruptedException {
    Process started;
    Process watch;
    try {
      ProcessBuilder builder =
          Sessions.of(plan.command()).redirectInput(ProcessBuilder.Redirect.INHERIT);
      builder.environment().putAll(plan.environment());
      watch = Sessions.startWatch();
      started = builder.start();
      process = started;
      Sessions.watch(watch, Long.toString(started.pid()));
    } catch (IOException e) {
      throw ToolException.cannotRun("the launcher cannot be started: %s", e.getMessage());
    }
    if (ending) {
      terminate(); // while it was being started
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

  @Override
  public void forward(String signal) {
    Process running = process;
    if (running != null && running.isAlive()) {
      Sessions.signal(running, signal);
    }
  }

  @Override
  public void terminate() {
    ending = true;
    Process running = process;
    if (running != null) {
      running.toHandle().destroy(); // Process.destroy would drop what it still prints
    }
  }

  @Override
  public void end() {
    Process running = process;
    terminate();
    if (running == null || !running.isAlive()) {
      return;
    }
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
