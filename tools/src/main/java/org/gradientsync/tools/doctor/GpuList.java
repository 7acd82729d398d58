package org.gradientsync.tools.doctor;

import java.util.List;
import jcuda.driver.JCudaDriver;
import jcuda.nvrtc.JNvrtc;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.spi.Availability;
import org.gradientsync.tools.links.DriverCall;

/** The process that loads the NVIDIA driver, cuBLAS and NVRTC, and prints what it finds. */
final class GpuList {
  private GpuList() {}

  /** Prints facts. */
  public static void main(String[] args) {
    List<CudaGpu> gpus;
    try {
      gpus = CudaGpu.visible();
    } catch (UnavailableException e) {
      print(Gpus.GPUS, Gpus.USABLE, "no: " + e.getMessage());
      return;
    }
    print(Gpus.GPUS, Gpus.USABLE, "yes");
    int[] version = new int[1];
    DriverCall.check(JCudaDriver.cuDriverGetVersion(version), "cuDriverGetVersion", "gpu=any");
    print(Gpus.GPUS, "CUDA of the driver", dotted(version[0] / 1000, version[0] % 1000 / 10));
    for (CudaGpu gpu : gpus) {
      print(Gpus.GPUS, "GPU " + gpu.ordinal(), gpu.name() + " (" + gpu.pciAddress() + ")");
    }
    print(Gpus.GPUS, Gpus.CUBLAS, text(CudaBlas.availability(), ""));
    Availability compiler = CudaModule.compilerAvailability();
    int[] major = new int[1];
    int[] minor = new int[1];
    if (compiler.usable()) {
      JNvrtc.nvrtcVersion(major, minor);
    }
    print(Gpus.GPUS, Gpus.NVRTC, text(compiler, ", " + dotted(major[0], minor[0])));
  }

  private static String text(Availability availability, String more) {
    return availability.usable() ? "usable" + more : "no: " + availability.reason();
  }

  private static String dotted(int major, int minor) {
    return major + "." + minor;
  }

  /** Prints at once, so that nothing is lost if this process dies. */
  static void print(String section, String name, Object value) {
    System.out.println(Facts.line(section, name, value));
    System.out.flush();
  }
}
