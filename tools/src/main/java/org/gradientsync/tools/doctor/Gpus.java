package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import jcuda.driver.JCudaDriver;
import jcuda.nvrtc.JNvrtc;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.spi.Availability;
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
    ChildProcess.Result trial = ChildProcess.java(Gpus.class.getName()).run(Duration.ofSeconds(15));
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

  /** The process that loads the NVIDIA driver, cuBLAS and NVRTC, and prints facts. */
  public static void main(String[] args) {
    List<CudaGpu> gpus;
    try {
      gpus = CudaGpu.visible();
    } catch (UnavailableException e) {
      print(GPUS, USABLE, "no: " + e.getMessage());
      return;
    }
    print(GPUS, USABLE, "yes");
    int[] version = new int[1];
    JCudaDriver.cuDriverGetVersion(version);
    print(GPUS, "CUDA of the driver", version[0] / 1000 + "." + version[0] % 1000 / 10);
    for (CudaGpu gpu : gpus) {
      print(GPUS, "GPU " + gpu.ordinal(), gpu.name() + " (" + gpu.pciAddress() + ")");
    }
    print(GPUS, CUBLAS, text(CudaBlas.availability(), ""));
    Availability compiler = CudaModule.compilerAvailability();
    int[] major = new int[1];
    int[] minor = new int[1];
    if (compiler.usable()) {
      JNvrtc.nvrtcVersion(major, minor);
    }
    print(GPUS, NVRTC, text(compiler, ", " + major[0] + "." + minor[0]));
  }

  private static String text(Availability availability, String more) {
    return availability.usable() ? "usable" + more : "no: " + availability.reason();
  }

  /** Prints at once, so that nothing is lost if this process dies. */
  static void print(String section, String name, Object value) {
    System.out.println(Facts.line(section, name, value));
    System.out.flush();
  }
}
