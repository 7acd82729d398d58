package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.gradientsync.tools.program.ChildProcess;

/** Checks GPUs, their libraries and their links, each in a separate process. */
final class Gpus {
  static final String GPUS = "GPUs";
  static final String LINKS = "GPU to GPU";
  static final String USABLE = "usable";
  static final String CUBLAS = "cuBLAS";
  static final String NVRTC = "NVRTC";
  static final String NO_DRIVER = "none is loaded";
  static final String DRIVER = "NVIDIA driver";

  private static final Path DRIVER_VERSION = Path.of("/proc/driver/nvidia/version");

  private Gpus() {}

  /** Finds out which GPUs this rank sees, and whether it can use them. */
  static void list(Facts facts) throws IOException {
    String driver = driver();
    facts.add(GPUS, DRIVER, driver.isEmpty() ? NO_DRIVER : driver);
    ChildProcess.Result trial =
        ChildProcess.java(GpuList.class.getName()).run(Duration.ofSeconds(15));
    facts.addAll(Facts.read(trial.output()));
    if (!trial.isGood()) {
      facts.add(GPUS, USABLE, "no: " + trial.failure());
    }
  }

  /**
   * Returns the driver's version, from the loaded driver or, as some containers need, from
   * nvidia-smi.
   */
  private static String driver() throws IOException {
    String loaded = Host.valueIn(DRIVER_VERSION, "NVRM version:").replaceAll("\\s+", " ");
    if (!loaded.isEmpty()) {
      return loaded;
    }
    ChildProcess.Result asked =
        ChildProcess.command("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
            .run(Duration.ofSeconds(5));
    return asked.isGood() ? asked.output().lines().findFirst().orElse("") : "";
  }

  /** Tests the links between the GPUs. Run it on one rank of each node; others would disturb it. */
  static void links(Facts facts) {
    ChildProcess.Result trial =
        ChildProcess.java(GpuLinks.class.getName()).run(Duration.ofSeconds(15));
    facts.addAll(Facts.read(trial.output()));
    if (!trial.isGood()) {
      facts.add(LINKS, "trial", trial.failure());
    }
  }

  static boolean areUsable(Facts facts) {
    return facts.get(GPUS, USABLE).equals("yes");
  }
}
