package org.gradientsync.mpi;

import java.io.IOException;
import java.util.List;
import java.util.function.UnaryOperator;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets;
import org.gradientsync.GradientSync;
import org.gradientsync.Parameter;
import org.gradientsync.local.LocalRanks;

/**
 * Trains until a signal asks it to stop, which the last rank sends itself.
 *
 * <p>Arguments: {@code threads} or {@code processes}; {@code self}, {@code launcher} or {@code
 * slurm} for who gets the signal; the signal; {@code once}, or {@code twice} to go on after the
 * first one until there is a second one.
 */
final class StopPrograms {
  private static final int SIGNAL_AT = 20; // steps

  private StopPrograms() {}

  public static void main(String[] args) throws Exception {
    UnaryOperator<GradientSync.Builder> options = builder -> builder.stopOnSignal(true);
    if (args[0].equals("threads")) {
      LocalRanks.run(3, options, sync -> train(sync, args));
    } else {
      try (GradientSync sync = options.apply(GradientSync.builder()).create()) {
        train(sync, args);
      }
    }
    System.out.println("ended well");
  }

  private static void train(GradientSync sync, String[] args) throws Exception {
    List<Parameter> model = List.of(new Parameter("w", DataType.FLOAT32, 100));
    try (GradientBuckets buckets = GradientBuckets.builder(sync, model).build()) {
      int steps = 0;
      do {
        if (steps == SIGNAL_AT && sync.rank() == sync.size() - 1) {
          signal(args[1], args[2]);
        }
        Thread.sleep(5); // so that it does not take many steps until a signal has arrived
        buckets.ready(0);
        buckets.finish();
        steps++;
        if (buckets.stopRequested() && args[3].equals("twice") && sync.rank() == sync.size() - 1) {
          System.out.println("process=" + ProcessHandle.current().pid() + ".");
          while (true) {
            signal(args[1], args[2]);
            Thread.sleep(100); // the same one at once is no second one
          }
        }
      } while (!buckets.stopRequested());
      System.out.println("rank " + sync.rank() + " stopped after " + steps + " steps.");
      if (sync.rank() == 0) {
        System.out.println("saved after " + steps + " steps.");
      }
      sync.barrier();
    }
  }

  private static void signal(String target, String name) throws IOException, InterruptedException {
    ProcessHandle self = ProcessHandle.current();
    List<String> command =
        switch (target) {
          case "self" -> List.of("kill", "-" + name, "" + self.pid());
          // In a session of its own: mpirun passes the signal on to the rank's whole process group.
          case "launcher" ->
              List.of("setsid", "kill", "-" + name, "" + self.parent().orElseThrow().pid());
          // Slurm signals it, too, perhaps before it has ended: it belongs to the rank's processes.
          default ->
              List.of(
                  "sh",
                  "-c",
                  "trap '' " + name + "; exec scancel --signal=" + name + " $SLURM_JOB_ID");
        };
    int code = new ProcessBuilder(command).inheritIO().start().waitFor();
    if (code != 0) {
      throw new IOException("no signal was sent: " + command + ", exitCode=" + code);
    }
  }
}
