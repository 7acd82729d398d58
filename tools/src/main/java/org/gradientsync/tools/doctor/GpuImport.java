package org.gradientsync.tools.doctor;

import static org.gradientsync.tools.links.DriverCall.check;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.StringJoiner;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUipcMemHandle;
import jcuda.driver.CUipcMem_flags;
import jcuda.driver.JCudaDriver;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.internal.driver.JCudaHandles;
import org.gradientsync.tools.links.LinkGpu;

/** The process that maps and reads the GPU memory of the process that started it. */
final class GpuImport {
  /** The number in GPU 0's memory; each further GPU has one more. */
  static final int NUMBER = 4711;

  private GpuImport() {}

  /**
   * Prints facts.
   *
   * @param args a handle of each GPU's memory
   */
  public static void main(String[] args) {
    int count = CudaGpu.visible().size();
    List<LinkGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      gpus.add(new LinkGpu(i, Integer.BYTES));
    }
    for (int from = 0; from < args.length; from++) {
      StringJoiner row = new StringJoiner(", ");
      for (LinkGpu to : gpus) {
        if (gpus.get(from) != to || count == 1) {
          row.add(to.name() + ": " + mapped(args[from], to, NUMBER + from));
        }
      }
      GpuList.print(Gpus.LINKS, "GPU " + from + GpuLinks.MAPPED, row);
    }
  }

  /** Returns what another process needs to map a GPU's memory. */
  static String export(LinkGpu gpu) {
    CUipcMemHandle handle = new CUipcMemHandle();
    gpu.makeCurrent();
    check(JCudaDriver.cuIpcGetMemHandle(handle, gpu.source()), "cuIpcGetMemHandle", gpu.what());
    return HexFormat.of().formatHex(JCudaHandles.bytes(handle));
  }

  private static String mapped(String text, LinkGpu gpu, int expected) {
    try {
      CUipcMemHandle handle = new CUipcMemHandle();
      byte[] bytes = HexFormat.of().parseHex(text);
      System.arraycopy(bytes, 0, JCudaHandles.bytes(handle), 0, bytes.length);
      CUdeviceptr address = new CUdeviceptr();
      gpu.makeCurrent();
      check(
          JCudaDriver.cuIpcOpenMemHandle(
              address, handle, CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          "cuIpcOpenMemHandle",
          gpu.what());
      int[] got = new int[1];
      check(
          JCudaDriver.cuMemcpyDtoH(Pointer.to(got), address, Integer.BYTES),
          "cuMemcpyDtoH",
          gpu.what());
      check(JCudaDriver.cuIpcCloseMemHandle(address), "cuIpcCloseMemHandle", gpu.what());
      return got[0] == expected ? "yes" : "wrong data";
    } catch (RuntimeException e) {
      return "failed: " + e.getMessage();
    }
  }
}
