package org.gradientsync.tools;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.run.RunCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command {@code gradient-sync}: {@code run}, and the programs that are on the class path. */
@Command(
    name = "gradient-sync",
    description = "Starts jobs of several ranks, and examines machines.",
    mixinStandardHelpOptions = true,
    versionProvider = GradientSyncCommand.Version.class,
    subcommands = RunCommand.class)
public final class GradientSyncCommand implements Runnable {
  @Spec private CommandSpec spec;

  /**
   * Runs a subcommand, and ends the JVM with its exit code.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    CommandLine line = commandLine(new GradientSyncCommand());
    for (Program program : ServiceLoader.load(Program.class)) {
      CommandLine subcommand = Program.commandLine(program);
      line.addSubcommand(subcommand.getCommandName(), subcommand);
    }
    Program.start(line, args);
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
    List<String> names = new ArrayList<>(spec.subcommands().keySet());
    String last = names.remove(names.size() - 1);
    throw new ParameterException(
        spec.commandLine(),
        "Missing subcommand: " + (names.isEmpty() ? "" : String.join(", ", names) + " or ") + last);
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
