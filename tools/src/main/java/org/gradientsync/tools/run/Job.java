package org.gradientsync.tools.run;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.gradientsync.tools.ToolException;

/** Runs a plan to its end. If this process is ended, it ends the job, too. */
final class Job {
  private static final long PATIENCE_SECONDS = 10;

  /** A scheduler signals the processes of a job one by one, and the launcher may end first. */
  private static final long SIGNALS_APART_SECONDS = 1;

  private final LaunchPlan plan;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Process process;
  private volatile PrefixedOutput out;
  private volatile PrefixedOutput err;

  Job(LaunchPlan plan) {
    this.plan = plan;
    Runtime.getRuntime().addShutdownHook(new Thread(this::end, "end"));
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
    ProcessBuilder builder =
        new ProcessBuilder(plan.command()).redirectInput(ProcessBuilder.Redirect.INHERIT);
    builder.environment().putAll(plan.environment());
    Process started;
    try {
      started = builder.start();
    } catch (IOException e) {
      throw ToolException.cannotRun("the launcher cannot be started: " + e.getMessage());
    }
    process = started;
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
    out.awaitEnd();
    err.awaitEnd();
    if (launchersCode != 0 && refusal.sentence().isPresent()) {
      throw ToolException.cannotRun(refusal.sentence().get());
    }
    return code.of(launchersCode);
  }

  /** Ends the launcher, which ends its ranks. */
  private void end() {
    ended.countDown();
    Process running = process;
    if (running == null || !running.isAlive()) {
      return;
    }
    running.destroy();
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
