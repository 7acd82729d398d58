package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class ShutdownHooksTest {
  private static final String LONG_NAME = "a hook with a name longer than Linux keeps";

  /** Only a signal counts, and only threads that are hooks of the program. */
  @ParameterizedTest
  @CsvSource({"TERM, true", "TERM, false", "exit, true"})
  void hooksOfTheProgramAreFoundAfterASignal(String ending, boolean hooks) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(Program.class.getName(), ending, Boolean.toString(hooks)));
    Process program = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (BufferedReader output =
        new BufferedReader(
            new InputStreamReader(program.getInputStream(), StandardCharsets.UTF_8))) {
      assertEquals("ready", output.readLine());
      if (!ending.equals("exit")) {
        new ProcessBuilder("kill", "-" + ending, Long.toString(program.pid())).start();
      }
      boolean found = hooks && !ending.equals("exit");
      assertEquals(found ? "[" + LONG_NAME + ", joins]" : "[]", output.readLine());
    } finally {
      program.destroyForcibly().waitFor();
    }
  }

  /** A program with hooks, and with threads that are none. */
  static final class Program {
    private Program() {}

    public static void main(String[] args) throws IOException, InterruptedException {
      Thread main = Thread.currentThread();
      CountDownLatch over = new CountDownLatch(1);
      if (args[1].equals("true")) {
        hook(main::join, "joins");
        hook(over::await, LONG_NAME);
      }
      hook(() -> System.out.println(names()), "gradient-sync-test");
      new Thread(() -> run(over::await), "works").start();
      Thread.sleep(50); // Linux has the starts of threads in steps of 10 ms: before the signal
      System.out.println("ready");
      if (args[0].equals("exit")) {
        System.exit(0);
      }
      over.await();
    }

    private static List<String> names() {
      return ShutdownHooks.ofProgram().stream().map(Thread::getName).sorted().toList();
    }

    private interface Task {
      void run() throws InterruptedException;
    }

    private static void hook(Task task, String name) {
      Runtime.getRuntime().addShutdownHook(new Thread(() -> run(task), name));
    }

    private static void run(Task task) {
      try {
        task.run();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
