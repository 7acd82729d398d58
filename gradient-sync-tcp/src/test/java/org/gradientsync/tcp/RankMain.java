package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs JUnit tests as one rank of a job. Every rank runs the same tests in the same order.
 *
 * <p>Arguments: {@code DIR CLASS...}. Writes one line for each test to {@code DIR/rank-N}.
 */
final class RankMain {
  private RankMain() {}

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
    Files.write(Path.of(args[0], "rank-" + System.getenv("RANK")), lines);
  }
}
