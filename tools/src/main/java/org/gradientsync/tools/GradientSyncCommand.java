package org.gradientsync.tools;

import java.io.PrintWriter;
import java.nio.file.InvalidPathException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gradientsync.tools.doctor.Doctor;
import org.gradientsync.tools.links.LinkPerf;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.perf.CollectivesPerf;
import org.gradientsync.tools.run.RunCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Unmatched;

/** The command {@code gradient-sync}. */
@Command(
    name = "gradient-sync",
    description = "Starts jobs of several ranks, and examines machines.",
    versionProvider = GradientSyncCommand.Version.class,
    subcommands = {
      RunCommand.class,
      GradientSyncCommand.DoctorCommand.class,
      GradientSyncCommand.PerfCommand.class,
      GradientSyncCommand.LinksCommand.class
    })
public final class GradientSyncCommand implements Runnable {
  @Spec private CommandSpec spec;

  @CommandLine.Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this and exit.")
  private boolean help;

  @CommandLine.Option(
      names = {"-V", "--version"},
      versionHelp = true,
      description = "Show the version and exit.")
  private boolean version;

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
    CommandLine line = new CommandLine(command);
    line.getSubcommands().values().stream()
        .filter(subcommand -> subcommand.getCommand() instanceof Forwarding)
        .forEach(subcommand -> subcommand.setStopAtUnmatched(true));
    return line.setCaseInsensitiveEnumValuesAllowed(true)
        .setExpandAtFiles(false) // takes arguments literally, not as files with more arguments
        .setAllowOptionsAsOptionParameters(true) // --jvm-option=-Dname=value
        .setStopAtPositional(true) // what follows the main class is for the program
        .setParameterExceptionHandler(GradientSyncCommand::explain)
        .setExecutionExceptionHandler(GradientSyncCommand::complain);
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

  /** A program with a command line of its own. */
  private abstract static class Forwarding implements Runnable {
    @Unmatched private final List<String> arguments = new ArrayList<>();

    String[] arguments() {
      return arguments.toArray(String[]::new);
    }
  }

  /** {@code gradient-sync doctor}. */
  @Command(
      name = "doctor",
      description = "Says what is wrong with this machine or this job, and what to do.")
  static final class DoctorCommand extends Forwarding {
    @Override
    public void run() {
      Doctor.main(arguments());
    }
  }

  /** {@code gradient-sync perf}. */
  @Command(
      name = "perf",
      description = "Times all-reduces; perf collectives: all-gather and others, too.")
  static final class PerfCommand extends Forwarding {
    @Override
    public void run() {
      String[] args = arguments();
      if (args.length > 0 && args[0].equals("collectives")) {
        CollectivesPerf.main(Arrays.copyOfRange(args, 1, args.length));
      } else {
        AllReducePerf.main(args);
      }
    }
  }

  /** {@code gradient-sync links}. */
  @Command(
      name = "links",
      description = "Measures the links between the GPUs of this machine and to the host.")
  static final class LinksCommand extends Forwarding {
    @Override
    public void run() {
      LinkPerf.main(arguments());
    }
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
    if (e instanceof InvalidPathException path) {
      command
          .getErr()
          .println(
              command.getCommandSpec().qualifiedName()
                  + ": this locale cannot encode a path: path="
                  + path.getInput()
                  + ", encoding="
                  + System.getProperty("sun.jnu.encoding")
                  + "; set LC_ALL=C.UTF-8, or another locale that can");
      return CommandLine.ExitCode.USAGE;
    }
    throw e;
  }
}
