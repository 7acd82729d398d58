package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.gradientsync.test.contract.RankTests;
import org.junit.jupiter.api.DynamicContainer;
import org.junit.jupiter.api.DynamicTest;

/** Runs test classes in all ranks of an mpirun job, and reports each test once for all ranks. */
final class RankJob {
  /** These jobs are long and fill the cores, so those of other tests go first. */
  private static final List<String> NICE = List.of("nice", "-n", "5");

  private RankJob() {}

  /** Runs the classes with {@link RankTests}, and waits for the end. */
  static DynamicContainer run(
      Path folder,
      int ranks,
      long seconds,
      Map<String, String> environment,
      List<String> jvmOptions,
      List<Class<?>> classes)
      throws IOException, InterruptedException {
    Mpirun.require();
    Path results = Files.createDirectory(folder.resolve(Integer.toString(ranks)));
    List<String> arguments = new ArrayList<>(List.of(results.toString()));
    classes.forEach(c -> arguments.add(c.getName()));
    Mpirun.Result job =
        Mpirun.run(
            ranks,
            seconds,
            environment,
            NICE,
            jvmOptions,
            RankTests.class,
            arguments.toArray(String[]::new));
    return report(ranks, results, job);
  }

  /**
   * Reports what {@link RankTests} has written.
   *
   * @param results its first argument
   */
  static DynamicContainer report(int ranks, Path results, Mpirun.Result job) throws IOException {
    return DynamicContainer.dynamicContainer(ranks + " ranks", tests(ranks, results, job));
  }

  private static List<DynamicTest> tests(int ranks, Path results, Mpirun.Result job)
      throws IOException {
    List<DynamicTest> tests = RankTests.report(results, ranks, job.output());
    tests.add(
        dynamicTest("the job ends well", () -> assertEquals(0, job.exitCode(), job.output())));
    return tests;
  }
}
