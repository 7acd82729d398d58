package org.gradientsync.tools.run;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gradientsync.RankLostException;

/**
 * The exit code of a job: that of the rank that failed first. Most launchers end with it; what some
 * print says more.
 */
final class ExitCode {
  /** Ranks end with it after an exception for a lost rank. */
  static final int RANK_LOST = RankLostException.EXIT_CODE;

  private static final int SIGNALS = 128;
  private static final int HIGHEST_SIGNAL = 64;
  private static final int INTERRUPT = 2;
  private static final int TERMINATE = 15;

  /** After Ctrl-C. */
  static final int INTERRUPTED = SIGNALS + INTERRUPT;

  /** After SIGTERM. */
  static final int TERMINATED = SIGNALS + TERMINATE;

  /** Slurm's code is the highest of all ranks, and those that it ends have a high one. */
  private static final Pattern OF_TASK =
      Pattern.compile("srun: error: .*tasks? [\\d,-]+: Exited with exit code (\\d+)");

  /** MPICH's launcher ends with the number of the signal, as if a rank had exited with it. */
  private static final Pattern SIGNAL =
      Pattern.compile("APPLICATION TERMINATED WITH THE EXIT STRING: .*\\(signal (\\d+)\\)");

  private Integer printed;

  /** Reads a line of the launcher. */
  synchronized void read(String line) {
    if (printed == null) {
      find(OF_TASK, line, 0);
      find(SIGNAL, line, SIGNALS);
    }
  }

  private void find(Pattern pattern, String line, int added) {
    Matcher matcher = pattern.matcher(line);
    if (matcher.find() && matcher.group(1).length() < 4) {
      printed = added + Integer.parseInt(matcher.group(1));
    }
  }

  /** Returns the job's exit code. */
  synchronized int of(int launchersCode) {
    return launchersCode == 0 || printed == null ? launchersCode : printed;
  }

  /** Returns whether a job ended because a rank was lost: killed, crashed, or not answering. */
  static boolean tellsOfLostRank(int code) {
    int signal = code - SIGNALS;
    return code == RANK_LOST
        || signal > 0 && signal <= HIGHEST_SIGNAL && signal != INTERRUPT; // Ctrl-C is the user's
  }

  /** Describes a code for which {@link #tellsOfLostRank} is true. */
  static String meaning(int code) {
    return "exit code " + code + (code == RANK_LOST ? "" : ", signal " + (code - SIGNALS));
  }
}
