package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs test classes in all ranks of a job, whose test starts {@link #main} in each, and reports
 * each test once for all ranks. Their {@link RankRunner} is usually a {@link ProcessRunner}. Needs
 * {@code org.junit.platform:junit-platform-launcher}.
 */
public final class RankTests {
  private RankTests() {}

  /**
   * Runs tests as one rank of a job. Every rank runs the same tests in the same order. Writes one
   * line for each test to a file of its own.
   *
   * @param args a folder, and the names of test classes
   * @throws IOException if the file cannot be written
   */
  public static void main(String[] args) throws IOException {
    List<String> lines = new ArrayList<>();
    TestExecutionListener listener =
        new TestExecutionListener() {
          @Override
          public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
            if (test.isTest() || !passed) {
              String cause = result.getThrowable().map(Throwable::toString).orElse("");
              String name = test.getUniqueId().replaceAll(".*\\[class:([^\\]]*)\\]", "$1");
              lines.add((passed ? "PASS " : "FAIL ") + name + " | " + cause.replace('\n', ';'));
            }
          }
        };
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(
                Arrays.stream(args)
                    .skip(1)
                    .map(DiscoverySelectors::selectClass)
                    .toArray(DiscoverySelector[]::new))
            .build();
    LauncherFactory.create().execute(request, listener);
    Files.write(file(Path.of(args[0]), ProcessRunner.rank()), lines);
  }

  /**
   * Reports what the ranks have written. Fails if one has written nothing.
   *
   * @param folder the first argument of {@link #main}
   * @param ranks the number of ranks
   * @param output what the job has printed, for errors
   * @return a test for each test of the ranks, which fails if it has failed on any of them
   * @throws IOException if a file cannot be read
   */
  public static List<DynamicTest> report(Path folder, int ranks, String output) throws IOException {
    Map<String, List<String>> failures = new LinkedHashMap<>();
    for (int rank = 0; rank < ranks; rank++) {
      Path file = file(folder, rank);
      assertTrue(Files.exists(file), () -> "a rank did not finish:\n" + output);
      for (String line : Files.readAllLines(file)) {
        String name = line.substring(5, line.indexOf(" | "));
        List<String> causes = failures.computeIfAbsent(name, k -> new ArrayList<>());
        if (line.startsWith("FAIL")) {
          causes.add("rank " + rank + line.substring(line.indexOf(" | ")));
        }
      }
    }
    assertFalse(failures.isEmpty(), output);
    List<DynamicTest> tests = new ArrayList<>();
    failures.forEach(
        (name, causes) ->
            tests.add(dynamicTest(name, () -> assertTrue(causes.isEmpty(), () -> "" + causes))));
    return tests;
  }

  private static Path file(Path folder, int rank) {
    return folder.resolve("rank-" + rank);
  }
}
