package org.gradientsync.tools.run;

import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Copies the output of a launcher, in which each piece of a rank's output has a tag, and prints
 * whole lines, with a short prefix or without: {@code [2] text}.
 *
 * <p>Launchers tag what they have read at once, so a tag may stand in the middle of a line, and
 * pieces of several ranks in one line. So this class keeps the unfinished line of each rank.
 *
 * <p>Tags also tell the launcher's own lines from those of the ranks, which may say the same.
 */
final class PrefixedOutput extends Thread {
  /** The tag that MPICH's launcher is to use: its own could be a part of a program's text. */
  static final String HYDRA_PATTERN = "<gradient-sync rank %r>";

  private static final Pattern OPEN_MPI =
      Pattern.compile("\\[(?:[^\\[\\]@\\s]+@)?\\d+,(\\d{1,9})]<std(?:out|err|diag)>: ?");
  private static final Pattern OPEN_MPI_4 =
      Pattern.compile("\\[\\d+,(\\d{1,9})]<std(?:out|err|diag)>:");
  static final Pattern HYDRA = Pattern.compile("<gradient-sync rank (\\d{1,9})>");
  private static final Pattern SLURM = Pattern.compile("^ *(\\d{1,9}): "); // it tags whole lines
  private static final Pattern NONE = Pattern.compile("(?!)()");
  private static final int LONGEST_LINE = 1 << 20;
  private static final int LONGEST_TAG = 512;
  private static final long PATIENCE_MILLIS = 2000;

  private final Reader in;
  private final PrintStream out;
  private final Pattern tag;
  private final LaunchPlan plan;
  private final Consumer<String> launcherLines;
  private final Map<Integer, StringBuilder> unfinished = new TreeMap<>();
  private int continued = -1; // the rank of the piece that was cut, or -1 at the start of a line
  private volatile boolean reads;

  /**
   * @param launcherLines hears each line that is no rank's
   */
  PrefixedOutput(
      InputStream in, OutputStream out, LaunchPlan plan, Consumer<String> launcherLines) {
    super("output");
    setDaemon(true);
    // The bytes of any charset pass through unchanged.
    this.in = new InputStreamReader(in, StandardCharsets.ISO_8859_1);
    this.out = new PrintStream(out, false, StandardCharsets.ISO_8859_1);
    tag = tag(plan);
    this.plan = plan;
    this.launcherLines = plan.launcher() == null ? line -> {} : launcherLines;
  }

  /** Returns how a plan's launcher tags the output of ranks. */
  private static Pattern tag(LaunchPlan plan) {
    if (plan.launcher() == null) {
      return NONE; // all lines are the program's
    }
    return switch (plan.launcher()) {
      case OPEN_MPI -> plan.command().contains("--tag-output") ? OPEN_MPI_4 : OPEN_MPI;
      case HYDRA -> HYDRA;
      case SLURM -> SLURM;
    };
  }

  @Override
  public void run() {
    try {
      copy();
    } catch (IOException e) {
      // the launcher has been ended
    }
    printUnfinished();
  }

  private void copy() throws IOException {
    StringBuilder line = new StringBuilder();
    char[] read = new char[8192];
    for (int count = read(read); count >= 0; count = read(read)) {
      for (int i = 0; i < count; i++) {
        if (read[i] == '\n') {
          end(line.toString());
          line.setLength(0);
        } else {
          line.append(read[i]);
        }
      }
      if (line.length() > LONGEST_LINE) {
        takeBeginning(line);
      }
      out.flush();
    }
    if (line.length() > 0) {
      take(line.toString());
    }
  }

  private synchronized void printUnfinished() {
    unfinished.forEach(this::print);
    unfinished.clear();
    out.flush();
  }

  private int read(char[] into) throws IOException {
    reads = true;
    try {
      return in.read(into);
    } finally {
      reads = false;
    }
  }

  /**
   * Waits until everything is printed, however slowly it is taken, after the launcher has ended. A
   * process that a rank has left behind may keep the output open: it is not waited for.
   */
  void awaitEnd() throws InterruptedException {
    do {
      join(PATIENCE_MILLIS);
    } while (isAlive() && !reads);
    printUnfinished();
  }

  /** Takes a line, whose last piece is the end of its rank's line. */
  private synchronized void end(String line) {
    int last = take(line);
    continued = -1;
    if (last >= 0) {
      print(last, unfinished.remove(last));
    } else if (line.isEmpty()) {
      out.print("\n");
    }
  }

  /** Takes the beginning of a long line, and leaves the rest, in which a tag may have begun. */
  private synchronized void takeBeginning(StringBuilder line) {
    int end = line.length() - LONGEST_TAG;
    Matcher matcher = tag.matcher(line);
    while (matcher.find()) {
      end = Math.max(end, matcher.end());
    }
    continued = take(line.substring(0, end));
    line.delete(0, end);
  }

  /** Takes pieces of ranks' lines. Returns the rank of the last piece, or -1 if there is none. */
  private synchronized int take(String line) {
    Matcher matcher = tag.matcher(line);
    int rank = continued;
    int start = 0;
    while (!(continued >= 0 && tag == SLURM) && matcher.find()) {
      add(rank, line.substring(start, matcher.start()));
      rank = Integer.parseInt(matcher.group(1));
      start = matcher.end();
    }
    add(rank, line.substring(start));
    return rank;
  }

  private void add(int rank, String piece) {
    if (rank >= 0) {
      StringBuilder begun = unfinished.computeIfAbsent(rank, key -> new StringBuilder());
      begun.append(piece);
      if (begun.length() > LONGEST_LINE) {
        print(rank, begun);
        begun.setLength(0);
      }
    } else if (!piece.isEmpty()) {
      launcherLines.accept(piece);
      out.print(piece + "\n");
    }
  }

  private void print(int rank, StringBuilder line) {
    out.print(plan.prefix(rank) + line + "\n");
  }
}
