package org.gradientsync.tools.program;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static java.util.stream.Collectors.joining;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * The common part of all programs, with or without ranks: command line, printing, and exit codes.
 */
@Command(
    sortOptions = false,
    exitCodeOnExecutionException = Program.CANNOT_RUN,
    exitCodeListHeading = "%nExit codes:%n")
public abstract class Program implements Callable<Integer> {
  /** Exit code: everything is right. */
  public static final int RIGHT = 0;

  /** Exit code: the program ran, and found something wrong. */
  public static final int WRONG = 1;

  /** Exit code: the command line is invalid. */
  public static final int BAD_USE = 2;

  /** Exit code: the program could not run here. */
  public static final int CANNOT_RUN = 3;

  /** Exit code: a rank was lost. */
  public static final int RANK_LOST = RankLostException.EXIT_CODE;

  private static final Logger log = LoggerFactory.getLogger(Program.class);

  @Spec private CommandSpec spec;

  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Show this and exit.")
  private boolean help;

  private Progress progress;

  /** Refuses invalid option values, with {@link #badUse}. */
  public abstract void checkCommandLine();

  /** Runs the program with its options, and returns the exit code. */
  public abstract int runProgram() throws InterruptedException;

  @Override
  public final Integer call() throws InterruptedException {
    try (Progress shown = new Progress(err(), spec.qualifiedName())) {
      progress = shown;
      checkCommandLine();
      return runProgram();
    } catch (ToolException e) {
      printError("%s", e.getMessage());
      return e.exitCode();
    } catch (InvalidPathException e) {
      printError(
          "this locale cannot encode a path: path=%s, encoding=%s; set LC_ALL=C.UTF-8, or another"
              + " locale that can",
          e.getInput(), System.getProperty("sun.jnu.encoding"));
      return BAD_USE;
    } catch (GradientSyncException e) {
      // Users get the message; the stack trace is for debugging.
      log.debug("cannot run", e);
      printError("%s", e.getMessage());
      boolean isLost =
          e instanceof RankLostException lost && lost.exitCode() == RankLostException.EXIT_CODE;
      return isLost ? RANK_LOST : CANNOT_RUN;
    }
  }

  public static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  /** Returns whether mpirun started this process together with others. */
  public static boolean isOneOfSeveral() {
    String launched = System.getenv("OMPI_COMM_WORLD_SIZE");
    return launched != null && !launched.equals("1");
  }

  /**
   * Returns common options that this program refuses with its own message. The help does not show
   * them.
   */
  public Set<String> hiddenOptions() {
    return Set.of();
  }

  public final Stream<OptionSpec> options() {
    return spec.options().stream();
  }

  /**
   * Returns an exception for an invalid command line: one sentence, and the exit code {@link
   * #BAD_USE}.
   */
  public final ParameterException badUse(String sentence) {
    return new ParameterException(spec.commandLine(), sentence + ".");
  }

  /** Refuses a value of an option that is too small. */
  public final void requireAtLeast(long minimum, String option, long value) {
    if (value < minimum) {
      throw badUse(option + " must be " + minimum + " or more: " + option + " " + value);
    }
  }

  /** Refuses a value of an option that is too large. */
  public final void requireAtMost(long maximum, String option, long value) {
    if (value > maximum) {
      throw badUse(option + " must be " + maximum + " or less: " + option + " " + value);
    }
  }

  /** Refuses a drawing whose name does not end in .svg; null means no drawing. */
  public final void requireSvg(String option, Path file) {
    if (file != null && !file.toString().endsWith(".svg")) {
      throw badUse(option + " writes SVG, so its file is named .svg: " + option + " " + file);
    }
  }

  /** Prints a line of the program's output. */
  public final void print(String format, Object... values) {
    spec.commandLine().getOut().println(String.format(Locale.ROOT, format, values));
  }

  /** Prints an error; with ranks, one that only this rank knows. */
  public final void printError(String format, Object... values) {
    err().println(spec.qualifiedName() + ": " + String.format(Locale.ROOT, format, values));
  }

  /** Returns whether a file can be written, or is null. Check this before an hour of work. */
  public final boolean canWrite(Path file) {
    if (file == null) {
      return true;
    }
    Path folder = file.toAbsolutePath().getParent();
    if (Files.isDirectory(file) || folder == null || !Files.isWritable(folder)) {
      printError("cannot write there: file=%s", file);
      return false;
    }
    return true;
  }

  /**
   * Returns whether a complete new file can replace this one, or it is null. It must not replace a
   * device, and would not follow a link.
   */
  public final boolean canReplace(Path file) {
    if (file != null
        && Files.exists(file, NOFOLLOW_LINKS)
        && !Files.isRegularFile(file, NOFOLLOW_LINKS)) {
      printError("cannot write there, as it is no file, or a link to one: file=%s", file);
      return false;
    }
    return canWrite(file);
  }

  /** Refuses two outputs to the same file; null means none. */
  public final void requireDifferentFiles(Path... files) {
    Set<Path> seen = new HashSet<>();
    for (Path file : files) {
      boolean isOne = file != null && (Files.isRegularFile(file) || !Files.exists(file));
      if (isOne && !seen.add(file.toAbsolutePath().normalize())) {
        throw badUse("two things cannot be written into one file: " + file);
      }
    }
  }

  /** Formats files for an error text; null means none. */
  public static String names(Path... files) {
    return Stream.of(files)
        .filter(Objects::nonNull)
        .map(file -> "file=" + file)
        .collect(joining(", "));
  }

  /** Writes files. */
  public interface Writing {
    void run() throws IOException;
  }

  /**
   * Writes files. On failure it prints why, and returns false.
   *
   * @param what the kind of output, with the {@link #names} of the files
   * @param plot the drawing among the files, or null
   */
  public final boolean write(String what, Path plot, Writing writing) {
    try {
      writing.run();
      return true;
    } catch (LinkageError | InternalError e) { // from AWT
      printError("cannot draw: file=%s, error=%s; it takes fontconfig and a font", plot, e);
      return false;
    } catch (IOException | RuntimeException e) {
      printError("cannot write %s, error=%s", what, reason(e));
      return false;
    }
  }

  /** Describes what went wrong with a file, for users. */
  public static String reason(Exception e) {
    Throwable cause = e;
    while (cause.getCause() != null && cause.getCause() != cause) {
      cause = cause.getCause(); // the plotting libraries wrap it several times
    }
    if (cause instanceof NoSuchFileException missing) {
      return "there is no such file or folder: " + missing.getFile();
    }
    if (cause instanceof AccessDeniedException denied) {
      return "access is denied: " + denied.getFile();
    }
    return cause instanceof IOException && cause.getMessage() != null
        ? cause.getMessage()
        : cause.toString();
  }

  /** Shows the current stage, for example {@code averaging}, to users who wait a long time. */
  public final void stage(String stage) {
    progress.stage(stage);
  }

  /** Shows the progress of a long run, see {@link Progress#bar}. */
  public final void bar(long done, long all, String figures) {
    progress.bar(done, all, figures);
  }

  /**
   * Returns a command line, for {@code main} and for tests.
   *
   * @param command a program, or a command that has programs as subcommands
   */
  public static CommandLine commandLine(Object command) {
    CommandLine line = new CommandLine(command);
    if (command instanceof Program program) {
      CommandSpec spec = line.getCommandSpec();
      for (String name : program.hiddenOptions()) {
        OptionSpec shown = spec.findOption(name);
        spec.remove(shown);
        spec.addOption(shown.toBuilder().hidden(true).build());
      }
    }
    return line.setCaseInsensitiveEnumValuesAllowed(true)
        .setExpandAtFiles(false) // takes arguments literally, not as files with more arguments
        .setParameterExceptionHandler(Program::explain);
  }

  /** Runs a program and ends the JVM with its exit code. */
  public static void start(Program program, String... args) {
    start(commandLine(program), args);
  }

  /** Runs a command and ends the JVM with its exit code. */
  public static void start(CommandLine command, String... args) {
    int code = command.execute(args);
    command.getOut().flush();
    if (System.out.checkError() && code == RIGHT && !readerHasLeft()) {
      command.getErr().println(command.getCommandName() + ": the output cannot be written");
      code = CANNOT_RUN;
    }
    System.exit(code);
  }

  /**
   * Returns whether the output goes to a program that has stopped reading, as {@code head} does.
   */
  private static boolean readerHasLeft() {
    try (OutputStream out = new FileOutputStream(FileDescriptor.out)) {
      out.write('\n'); // System.out does not tell what was wrong
      return false;
    } catch (IOException e) {
      return "Broken pipe".equals(e.getMessage());
    }
  }

  /**
   * Prints an error in the command line, without the usual page of help. Under mpirun every rank
   * prints it, because mpirun ends the others as soon as one rank has exited.
   */
  private static int explain(ParameterException e, String[] args) {
    CommandLine command = e.getCommandLine();
    PrintWriter err = command.getErr();
    err.println(command.getCommandSpec().qualifiedName() + ": " + e.getMessage());
    CommandLine.UnmatchedArgumentException.printSuggestions(e, err);
    return BAD_USE;
  }

  private PrintWriter err() {
    return spec.commandLine().getErr();
  }
}
