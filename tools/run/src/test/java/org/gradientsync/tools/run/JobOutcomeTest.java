package org.gradientsync.tools.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.gradientsync.GradientSync;
import org.gradientsync.RankLostException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests output, exit codes and restarts, without processes. */
class JobOutcomeTest {
  @ParameterizedTest
  @CsvSource({
    "OPEN_MPI, --tag-output, '[1,%d]<stdout>:'",
    "OPEN_MPI, --output, '[prterun-host-123@1,%d]<stdout>: '",
    "HYDRA, -prepend-pattern, '<gradient-sync rank %d>'"
  })
  void piecesOfLinesArePutTogether(LauncherKind kind, String option, String tag) {
    String zero = tag.formatted(0);
    String twelve = tag.formatted(12);
    String text =
        zero
            + "par"
            + twelve
            + " a [0] ü"
            + zero
            + "tial\n"
            + zero
            + "\n"
            + twelve
            + "b\n"
            + "the launcher's own: x\n\n"
            + twelve
            + "no end";
    List<String> own = new ArrayList<>();
    assertEquals(
        "[0] partial\n[0] \n[12]  a [0] üb\nthe launcher's own: x\n\n[12] no end\n",
        copied(text, kind, option, true, own));
    assertEquals(
        "partial\n\n a [0] üb\nthe launcher's own: x\n\nno end\n",
        copied(text, kind, option, false, own));
    assertEquals(List.of("the launcher's own: x", "the launcher's own: x"), own);
    own.clear();
    assertEquals(text + "\n", copied(text, null, option, false, own));
    assertEquals(List.of(), own); // the program's
  }

  /** Their pieces, among them those of a tag, are wherever a cut may be. */
  @ParameterizedTest
  @CsvSource({
    "OPEN_MPI, --tag-output, '[1,%d]<stdout>:'",
    "HYDRA, -prepend-pattern, '<gradient-sync rank %d>'",
    "SLURM, --label, '%d: '"
  })
  void longLinesKeepTheirRank(LauncherKind kind, String option, String tag) {
    int[] lengths =
        kind == LauncherKind.SLURM ? new int[] {5_000_000} : new int[] {4000, 4001, 4003};
    StringBuilder text = new StringBuilder();
    StringBuilder expected = new StringBuilder();
    int pieces = kind == LauncherKind.SLURM ? 1 : 1500;
    for (int i = 0; i < pieces; i++) {
      String piece = "7: ".repeat(lengths[i % lengths.length] / 3);
      text.append(tag.formatted(3)).append(piece);
      expected.append(piece);
    }
    List<String> own = new ArrayList<>();
    text.append('\n').append(tag.formatted(4)).append("short\n");
    List<String> lines = copied(text.toString(), kind, option, true, own).lines().toList();
    assertEquals(List.of(), own);
    assertEquals("[4] short", lines.get(lines.size() - 1));
    StringBuilder found = new StringBuilder();
    for (String line : lines.subList(0, lines.size() - 1)) {
      assertTrue(line.startsWith("[3] "), line.substring(0, Math.min(80, line.length())));
      found.append(line.substring("[3] ".length()));
    }
    assertTrue(expected.toString().contentEquals(found));
  }

  @Test
  void linesOfProcessesAreReadInPiecesThatFitIntoMemory() throws Exception {
    String most = "a".repeat(1 << 20);
    StringReader in = new StringReader("at 1 %\rat 2 %\r\n\n" + most + "b\nc");
    List<String> pieces = new ArrayList<>();
    for (String piece = LineCopy.readLine(in); piece != null; piece = LineCopy.readLine(in)) {
      pieces.add(piece);
    }
    assertEquals(List.of("at 1 %\rat 2 %\r", "", most, "b", "c"), pieces);
  }

  @Test
  void slurmTagsWholeLines() {
    assertEquals(
        "[0] 1: a\n[11] b\nsrun: error: x\n",
        copied(
            " 0: 1: a\n11: b\nsrun: error: x\n",
            LauncherKind.SLURM,
            "--label",
            true,
            new ArrayList<>()));
  }

  private static String copied(
      String text, LauncherKind kind, String option, boolean prefixed, List<String> own) {
    LaunchPlan plan =
        new LaunchPlan(kind, "", List.of("run", option), Map.of(), List.of(), prefixed);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayInputStream in = new ByteArrayInputStream(text.getBytes(UTF_8));
    new PrefixedOutput(in, out, plan, own::add).run();
    return out.toString(UTF_8);
  }

  @ParameterizedTest
  @CsvSource({
    "3, '', 3",
    "0, 'srun: error: node1: task 1: Exited with exit code 3', 0",
    "143, 'srun: error: node1: task 1: Exited with exit code 3', 3",
    "143, 'srun: error: node1: tasks 0-1,7: Exited with exit code 75', 75",
    "9, 'YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)', 137",
    "9, 'my own (signal 9)', 9"
  })
  void theFirstRanksCodeIsTheJobs(int launchers, String line, int expected) {
    ExitCode code = new ExitCode();
    code.read(line);
    code.read("srun: error: node1: task 0: Exited with exit code 99");
    ExitCode only = new ExitCode();
    only.read(line);
    assertEquals(expected, only.of(launchers));
    assertEquals(
        launchers == 0 ? 0 : line.isEmpty() || launchers == 9 && expected == 9 ? 99 : expected,
        code.of(launchers));
  }

  @Test
  void onlyAJobThatLostARankIsStartedAgain() throws Exception {
    assertEquals("75 137 0 -> 0", attempts(5, 75, 137, 0));
    assertEquals("139 134 143 -> 143", attempts(2, 139, 134, 143, 0));
    for (int code : new int[] {0, 1, 2, 3, 130, 128, 255}) {
      assertEquals(code + " -> " + code, attempts(5, code, 0));
    }
    StringWriter err = new StringWriter();
    new Restarts(1, new PrintWriter(err)).run(() -> 137);
    assertEquals(
        "gradient-sync: a rank was lost (exit code 137, signal 9); attempt 2 of 2 starts\n"
            + "gradient-sync: a rank was lost (exit code 137, signal 9); the job is not started"
            + " again, as it has been 2 times\n",
        err.toString());
  }

  private static String attempts(int restarts, Integer... codes) throws Exception {
    Iterator<Integer> next = List.of(codes).iterator();
    StringBuilder made = new StringBuilder();
    int code =
        new Restarts(restarts, new PrintWriter(new StringWriter()))
            .run(
                () -> {
                  int ended = next.next();
                  made.append(ended).append(' ');
                  return ended;
                });
    return made + "-> " + code;
  }

  @ParameterizedTest
  @ValueSource(strings = {"no.Such", "java.lang.String"})
  void programsThatDoNotAllowThreadsAreRefused(String mainClass) {
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    assertEquals(2, RanksAsThreads.run(2, mainClass, new String[0], new PrintStream(err)));
    assertEquals(1, err.toString(UTF_8).lines().count());
    assertTrue(
        err.toString(UTF_8).contains("cannot be threads: class=" + mainClass + "; --threads"));
  }

  @Test
  void ranksAreThreads() {
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    PrintStream to = new PrintStream(err);
    String main = Program.class.getName();
    assertEquals(0, RanksAsThreads.run(3, main, new String[] {"3"}, to), err::toString);
    assertEquals(75, RanksAsThreads.run(3, main, new String[] {"lose"}, to));
    assertFalse(err.toString(UTF_8).contains("InvocationTarget"), err::toString);
    assertEquals(1, RanksAsThreads.run(3, main, new String[] {"fail"}, to));
    assertTrue(err.toString(UTF_8).contains("on purpose"), err::toString);
  }

  /** A program whose ranks may be threads. */
  public static final class Program {
    private Program() {}

    /** Adds ones. */
    public static void run(GradientSync sync, String[] args) {
      float[] sum = {1};
      sync.average(sum);
      switch (args[0]) {
        case "lose" -> throw new RankLostException("on purpose");
        case "fail" -> throw new IllegalStateException("on purpose");
        default -> assertEquals(args[0], "" + sync.size());
      }
    }
  }
}
