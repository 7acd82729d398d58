package org.gradientsync.tools;

import java.nio.file.InvalidPathException;
import org.gradientsync.tools.doctor.Doctor;
import org.gradientsync.tools.links.LinkPerf;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.ToolException;
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
    return line.setExecutionExceptionHandler(GradientSyncCommand::complain);
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

  private static int complain(Exception e, CommandLine command, CommandLine.ParseResult parsed)
      throws Exception {
    String sentence;
    int code = Program.BAD_USE;
    if (e instanceof ToolException known) {
      sentence = known.getMessage();
      code = known.exitCode();
    } else if (e instanceof InvalidPathException path) {
      sentence =
          "this locale cannot encode a path: path="
              + path.getInput()
              + ", encoding="
              + System.getProperty("sun.jnu.encoding")
              + "; set LC_ALL=C.UTF-8, or another locale that can";
    } else {
      throw e;
    }
    command.getErr().println(command.getCommandSpec().qualifiedName() + ": " + sentence);
    return code;
  }
}
