package org.gradientsync.examples;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;

/** A training that takes its time until a fourth process has come. */
final class PacedMlp extends TrainMlp {
  static final int ROWS = 8;
  private static final int PATIENT = 40; // steps that are short nevertheless
  private static final Path FOLDER = Path.of("processes"); // a file for each process

  private boolean told;

  public static void main(String[] args) {
    start(new PacedMlp(), args);
  }

  /** Returns the files, whose names are the processes' numbers and their first ranks. */
  static List<Path> processes(Path parent) throws IOException {
    try (Stream<Path> files = Files.list(parent.resolve(FOLDER))) {
      return files.toList();
    }
  }

  @Override
  MlpEngine engine(GradientSync sync, int[] shape) {
    try {
      if (!told) {
        String name = ProcessHandle.current().pid() + "-" + sync.rank();
        Files.createFile(Files.createDirectories(FOLDER).resolve(name));
        told = true;
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new HostMlp(sync, shape, ROWS) {
      private boolean hurries;
      private int steps;

      @Override
      public void forward(int batch) {
        try {
          hurries = hurries || processes(Path.of("")).size() > 3;
          if (!hurries) {
            Thread.sleep(steps++ < PATIENT ? 50 : 100);
          }
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
          throw new IllegalStateException(e);
        }
        super.forward(batch);
      }
    };
  }
}
