package org.gradientsync.mpi;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.gradientsync.DataType;
import org.gradientsync.core.host.TemporaryFiles;
import org.gradientsync.core.selection.Providers;
import org.gradientsync.mpi.binding.MpiCalls;
import org.gradientsync.mpi.binding.MpiJob;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.DeviceRequest;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;

/**
 * Tests in a child process whether MPI supports device memory. An MPI that reports support but
 * lacks it reads a GPU's address as a host address, which crashes the process. The child protects
 * the job.
 */
final class CudaAwareProbe {
  private static final long SECONDS = 60;
  private static final int COUNT = 1000;

  /**
   * The prefixes of variables that make a process a rank of this job. The child must be a job of
   * its own, with otherwise the same settings.
   */
  private static final List<String> OF_RANKS =
      List.of(
          "OMPI_COMM_WORLD_",
          "OMPI_UNIVERSE",
          "OMPI_APP_CTX",
          "OMPI_FIRST_RANKS",
          "OMPI_NUM_APP",
          "OMPI_MCA_ess",
          "OMPI_MCA_orte",
          "OMPI_MCA_initial_wdir",
          "OMPI_FILE_LOCATION",
          "OMPI_COMMAND",
          "OMPI_ARGV",
          "PMIX_",
          "PMI_",
          "PRTE_",
          "ORTE_");

  private CudaAwareProbe() {}

  /**
   * Runs the child.
   *
   * @param othersWait how long the other ranks wait for the result
   * @return usable, or how the child failed
   */
  static Availability run(Duration othersWait) {
    long seconds = Math.max(1, Math.min(SECONDS, othersWait.toSeconds() / 2));
    Path java = Path.of(System.getProperty("java.home"), "bin", "java");
    Path output = null;
    Process child = null;
    try {
      output = new TemporaryFiles("probe").createFile(".log");
      ProcessBuilder builder =
          new ProcessBuilder(
                  java.toString(),
                  "-Djava.library.path=" + System.getProperty("java.library.path"),
                  MpiBinding.option(),
                  "-cp",
                  System.getProperty("java.class.path"),
                  CudaAwareProbe.class.getName())
              .redirectErrorStream(true)
              .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
              .redirectOutput(output.toFile());
      forgetJob(builder.environment());
      child = builder.start();
      if (!child.waitFor(seconds, TimeUnit.SECONDS)) {
        return Availability.no("a trial process did not end within " + seconds + " s");
      }
      return child.exitValue() == 0
          ? Availability.yes()
          : Availability.no(
              "a trial process ended with code " + child.exitValue() + ": " + lastLine(output));
    } catch (IOException e) {
      return Availability.no("a trial process cannot be started: " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Availability.no("interrupted during the trial");
    } finally {
      if (child != null) {
        child.destroyForcibly(); // if it is still running
      }
      if (output != null) {
        output.toFile().delete();
      }
    }
  }

  /** Removes the variables that make a process a rank of this job. */
  static void forgetJob(Map<String, String> environment) {
    environment.keySet().removeIf(k -> OF_RANKS.stream().anyMatch(k::startsWith));
  }

  private static String lastLine(Path output) throws IOException {
    String last = "(no output)";
    for (String line : Files.readString(output, StandardCharsets.ISO_8859_1).split("\n")) {
      last = line.isBlank() || line.startsWith("#") ? last : line.trim();
    }
    return last;
  }

  /** The program of the child, which sends device memory to itself. */
  public static void main(String[] args) {
    Duration limit = Duration.ofSeconds(SECONDS / 2);
    MpiCalls calls = MpiBinding.get(new Settings(Map.of()));
    MpiJob mpi = MpiJob.connect(calls, new Timeouts(limit, limit, Optional.empty()));
    DeviceRequest request = new DeviceRequest(0, 0, 1, new Settings(Map.of()));
    BackendDevice device =
        Providers.of(DeviceProvider.class).stream()
            .filter(p -> p.kind().equals("cuda"))
            .findFirst()
            .orElseThrow()
            .open(request);
    AbstractDeviceBuffer from = (AbstractDeviceBuffer) device.allocate(DataType.INT32, COUNT);
    AbstractDeviceBuffer to = (AbstractDeviceBuffer) device.allocate(DataType.INT32, COUNT);
    int[] values = new int[COUNT];
    for (int i = 0; i < COUNT; i++) {
      values[i] = 3 * i + 1;
    }
    from.copyFrom(values);
    device.await(from);
    device.await(to);
    Message receive = mpi.receiver(to.nativeView(0, COUNT), 0, 1);
    Message send = mpi.sender(from.nativeView(0, COUNT), 0, 1);
    receive.start();
    send.start();
    while (!receive.test() || !send.test()) {
      Thread.onSpinWait();
    }
    int[] back = new int[COUNT];
    to.copyTo(back);
    // Does not return, because finalizing MPI must not affect the result.
    Runtime.getRuntime().halt(java.util.Arrays.equals(values, back) ? 0 : 3);
  }
}
