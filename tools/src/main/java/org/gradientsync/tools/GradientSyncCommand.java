package org.gradientsync.tools;

import java.io.PrintWriter;
import org.gradientsync.tools.run.RunCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command {@code gradient-sync}. */
@Command(
    name = "gradient-sync",
    description = "Starts jobs of several ranks.",
    subcommands = RunCommand.class)
public final class GradientSyncCommand implements Runnable {
  @Spec private CommandSpec spec;

  @CommandLine.Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this and exit.")
  private boolean help;

  /**
   * Runs a subcommand, and ends the JVM with its exit code.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    System.exit(commandLine(new GradientSyncCommand()).execute(args));
  }

  /**
   * Returns a command line that explains errors in one sentence.
   *
   * @param command the command, or a subcommand in tests
   */
  public static CommandLine commandLine(Object command) {
    return new CommandLine(command)
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setExpandAtFiles(false) // takes arguments literally, not as files with more arguments
        .setStopAtPositional(true) // what follows the main class is for the program
        .setParameterExceptionHandler(GradientSyncCommand::explain)
        .setExecutionExceptionHandler(GradientSyncCommand::complain);
  }

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "Missing subcommand: run");
  }

  /** Prints an error in the command line, without the usual page of help. */
  private static int explain(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    PrintWriter err = command.getErr();
    err.println(command.getCommandSpec().qualifiedName() + ": " + e.getMessage());
    CommandLine.UnmatchedArgumentException.printSuggestions(e, err);
    return CommandLine.ExitCode.USAGE;
  }

  private static int complain(Exception e, CommandLine command, CommandLine.ParseResult parsed)
      throws Exception {
    if (e instanceof ToolException known) {
      command
          .getErr()
          .println(command.getCommandSpec().qualifiedName() + ": " + known.getMessage());
      return known.exitCode();
    }
    throw e;
  }
}
