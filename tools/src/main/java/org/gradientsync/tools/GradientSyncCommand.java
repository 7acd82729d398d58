package org.gradientsync.tools;

import org.gradientsync.tools.doctor.Doctor;
import org.gradientsync.tools.links.LinkPerf;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.run.RunCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command {@code gradient-sync}. */
@Command(
    name = "gradient-sync",
    description = "Starts jobs of several ranks, and examines machines.",
    mixinStandardHelpOptions = true,
    versionProvider = GradientSyncCommand.Version.class,
    subcommands = {RunCommand.class, Doctor.class, AllReducePerf.class, LinkPerf.class})
public final class GradientSyncCommand implements Runnable {
  @Spec private CommandSpec spec;

  /**
   * Runs a subcommand, and ends the JVM with its exit code.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    Program.start(commandLine(new GradientSyncCommand()), args);
  }

  /**
   * Returns a command line that explains errors in one sentence.
   *
   * @param command the command, or {@code run} in tests
   */
  public static CommandLine commandLine(Object command) {
    CommandLine line = Program.commandLine(command);
    line.getSubcommands()
        .getOrDefault("run", line)
        .setAllowOptionsAsOptionParameters(true) // --jvm-option=-Dname=value
        .setStopAtPositional(true); // what follows the main class is for the program
    return line;
  }

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "Missing subcommand: run, doctor, perf or links");
  }

  /** The version in the manifest of the jar. */
  static final class Version implements CommandLine.IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = GradientSyncCommand.class.getPackage().getImplementationVersion();
      return new String[] {"gradient-sync " + (version == null ? "(not packaged)" : version)};
    }
  }
}
