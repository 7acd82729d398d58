package org.gradientsync.tools.run;

import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tools.program.Program;

/**
 * The program of a job whose ranks are threads. It calls the user's {@code public static void
 * run(GradientSync, String[])} once for each rank.
 */
public final class RanksAsThreads {
  private RanksAsThreads() {}

  /**
   * Runs all ranks, and ends the JVM.
   *
   * @param args the number of ranks, the main class, and its arguments
   */
  public static void main(String[] args) {
    String[] rest = Arrays.copyOfRange(args, 2, args.length);
    System.exit(run(Integer.parseInt(args[0]), args[1], rest, System.err));
  }

  static int run(int ranks, String mainClass, String[] args, PrintStream err) {
    Method run;
    try {
      run = Class.forName(mainClass).getMethod("run", GradientSync.class, String[].class);
    } catch (ClassNotFoundException | NoSuchMethodException e) {
      run = null;
    }
    if (run == null || !Modifier.isStatic(run.getModifiers())) {
      err.println(
          "gradient-sync run: the ranks of this program cannot be threads: class="
              + mainClass
              + "; --threads takes a main class with the method"
              + " public static void run(GradientSync sync, String[] args);"
              + " leave --threads out to have processes");
      return Program.BAD_USE;
    }
    Method program = run;
    try {
      LocalRanks.run(ranks, sync -> call(program, sync, args.clone()));
      return 0;
    } catch (GradientSyncException e) {
      e.printStackTrace(err); // the user asked for the program, not for a log
      return e instanceof RankLostException lost ? lost.exitCode() : Program.WRONG;
    }
  }

  private static void call(Method program, GradientSync sync, String[] args) throws Exception {
    try {
      program.invoke(null, sync, args);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Exception thrown) {
        throw thrown;
      } else if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw e;
    }
  }
}
