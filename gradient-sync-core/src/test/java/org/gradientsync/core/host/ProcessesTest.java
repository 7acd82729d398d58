package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which processes have ended. */
class ProcessesTest {
  private static final long SELF = ProcessHandle.current().pid();

  /** A process that has ended, and whose parent has not read its exit code. */
  @Test
  void aZombieHasEnded() throws Exception {
    String script = "exec 3<&0; (read line <&3) & echo $!; exec sleep 600";
    Process parent = new ProcessBuilder("sh", "-c", script).start();
    try (BufferedReader output = parent.inputReader()) {
      long child = Long.parseLong(output.readLine());
      awaitStat(parent.pid(), "(sleep)"); // a shell would read the exit code
      assertTrue(Processes.isAlive(child, Processes.started(child)));
      parent.getOutputStream().close(); // ends the child
      awaitStat(child, ") Z ");
      assertFalse(Processes.isAlive(child, Processes.UNKNOWN));
      assertFalse(Processes.isAlive(child, Processes.started(child)));
      assertTrue(ProcessFileNames.isOfEndedProcess("p-", ProcessFileNames.of("p-", child) + "x"));
    } finally {
      parent.destroyForcibly().waitFor();
    }
  }

  private static void awaitStat(long process, String text) throws Exception {
    while (!Files.readString(Path.of("/proc", Long.toString(process), "stat")).contains(text)) {
      Thread.sleep(10);
    }
  }

  @Test
  void thisProcessIsAliveAndItsStartIsCompared() {
    long started = Processes.started(SELF);
    assertNotEquals(Processes.UNKNOWN, started);
    assertTrue(Processes.isAlive(SELF, started));
    assertTrue(Processes.isAlive(SELF, Processes.UNKNOWN));
    assertFalse(Processes.isAlive(SELF, started - 1));
  }

  @Test
  void aProcessThatIsGoneHasEnded() throws IOException, InterruptedException {
    long gone = TemporaryFilesTest.ended();
    assertFalse(Processes.isAlive(gone, Processes.UNKNOWN));
    assertEquals(Processes.UNKNOWN, Processes.started(gone));
  }

  @ParameterizedTest
  @CsvSource({
    "java, S, 9, true",
    "java, R, 1, true",
    "java, T, 9, true", // stopped
    "java, X, 1, false",
    "java, Z, 1, false",
    "java, Z, 9, true", // the first thread has ended, the others have not
    "a) Z 1 (b, S, 9, true",
    "a) S (b, Z, 1, false",
    "a b ) c, Z, 1, false"
  })
  void commandNamesDoNotMatter(String command, String state, int threads, boolean alive) {
    String text =
        "7 ("
            + command
            + ") "
            + state
            + " 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 "
            + threads
            + " 0 55 0";
    byte[] stat = text.getBytes(StandardCharsets.US_ASCII);
    assertEquals(alive, Processes.isAlive(stat, stat.length, Processes.UNKNOWN));
    assertEquals(alive, Processes.isAlive(stat, stat.length, 55));
    assertFalse(Processes.isAlive(stat, stat.length, 56));
  }
}
