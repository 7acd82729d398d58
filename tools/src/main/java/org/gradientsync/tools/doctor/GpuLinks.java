package org.gradientsync.tools.doctor;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUipcMemHandle;
import jcuda.driver.CUipcMem_flags;
import jcuda.driver.JCudaDriver;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.internal.driver.JCudaHandles;
import org.gradientsync.tools.links.LinkGpu;
import org.gradientsync.tools.links.LinkKind;
import org.gradientsync.tools.links.LinkMeter;
import org.gradientsync.tools.program.ChildProcess;

/** The process that tests the links between GPUs: copies, mapping into other processes, speed. */
final class GpuLinks {
  static final String SLOW = "slow links";
  static final String STRAIGHT = "straight";
  static final String COPIES = " copies to";
  static final String MAPPED = " is mapped by";

  /** Small enough to measure eight GPUs within seconds. */
  private static final long BYTES = 64L << 20;

  private static final int REPEATS = 3;

  /** The number in GPU 0's memory; each further GPU has one more. */
  private static final int NUMBER = 4711;

  private GpuLinks() {}

  /**
   * Prints facts.
   *
   * @param args nothing, or a handle of each GPU's memory, for a process that is to map it
   */
  public static void main(String[] args) {
    int count = CudaGpu.visible().size();
    List<LinkGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      gpus.add(new LinkGpu(i, Integer.BYTES));
    }
    if (args.length > 0) {
      map(args, gpus);
      return;
    }
    for (int i = 0; i < count; i++) {
      StringJoiner row = new StringJoiner(", ");
      for (int j = 0; j < count; j++) {
        if (i != j) {
          row.add("GPU " + j + ": " + copied(gpus.get(i), gpus.get(j), 1 + i * count + j));
        }
      }
      if (count > 1) {
        print("GPU " + i + COPIES, row);
      }
    }
    mapped(gpus);
    gpus.forEach(LinkGpu::close);
    try (LinkMeter meter = new LinkMeter(count, BYTES, REPEATS)) {
      speeds(meter);
    }
  }

  private static void print(String name, Object value) {
    Gpus.print(Gpus.LINKS, name, value);
  }

  /** Copies a number, and checks that it arrives. */
  private static String copied(LinkGpu from, LinkGpu to, int number) {
    try {
      boolean access = from.enableAccess(to) && to.enableAccess(from);
      write(from, number);
      from.check(
          JCudaDriver.cuMemcpyPeer(
              to.target(), to.context(), from.source(), from.context(), Integer.BYTES),
          "cuMemcpyPeer to " + to);
      if (read(to, to.target()) != number) {
        return "wrong data";
      }
      return access ? STRAIGHT : "through the host";
    } catch (RuntimeException e) {
      return "failed: " + e.getMessage();
    }
  }

  private static void write(LinkGpu gpu, int number) {
    gpu.makeCurrent();
    gpu.check(
        JCudaDriver.cuMemcpyHtoD(gpu.source(), Pointer.to(new int[] {number}), Integer.BYTES),
        "cuMemcpyHtoD");
  }

  private static int read(LinkGpu gpu, CUdeviceptr from) {
    int[] got = new int[1];
    gpu.makeCurrent();
    gpu.check(JCudaDriver.cuMemcpyDtoH(Pointer.to(got), from, Integer.BYTES), "cuMemcpyDtoH");
    return got[0];
  }

  /** Makes another process map each GPU's memory. */
  private static void mapped(List<LinkGpu> gpus) {
    String[] handles = new String[gpus.size()];
    try {
      for (int i = 0; i < handles.length; i++) {
        LinkGpu gpu = gpus.get(i);
        write(gpu, NUMBER + i);
        CUipcMemHandle handle = new CUipcMemHandle();
        gpu.check(JCudaDriver.cuIpcGetMemHandle(handle, gpu.source()), "cuIpcGetMemHandle");
        handles[i] = HexFormat.of().formatHex(JCudaHandles.bytes(handle));
      }
    } catch (RuntimeException e) {
      print("GPU 0" + MAPPED, "failed: " + e.getMessage());
      return;
    }
    ChildProcess.Result trial =
        ChildProcess.java(GpuLinks.class.getName(), handles).run(Duration.ofSeconds(8));
    Facts.read(trial.output()).section(Gpus.LINKS).forEach(GpuLinks::print);
    if (!trial.isGood()) {
      print("another process" + MAPPED, "failed: " + trial.failure());
    }
  }

  /** Maps and reads the GPU memory of the process that started this one. */
  private static void map(String[] handles, List<LinkGpu> gpus) {
    for (int from = 0; from < handles.length; from++) {
      StringJoiner row = new StringJoiner(", ");
      for (LinkGpu to : gpus) {
        if (gpus.get(from) != to || gpus.size() == 1) {
          row.add(to + ": " + mapped(handles[from], to, NUMBER + from));
        }
      }
      print("GPU " + from + MAPPED, row);
    }
  }

  private static String mapped(String text, LinkGpu gpu, int expected) {
    try {
      CUipcMemHandle handle = new CUipcMemHandle();
      byte[] bytes = HexFormat.of().parseHex(text);
      System.arraycopy(bytes, 0, JCudaHandles.bytes(handle), 0, bytes.length);
      CUdeviceptr address = new CUdeviceptr();
      gpu.makeCurrent();
      gpu.check(
          JCudaDriver.cuIpcOpenMemHandle(
              address, handle, CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          "cuIpcOpenMemHandle");
      int got = read(gpu, address);
      gpu.check(JCudaDriver.cuIpcCloseMemHandle(address), "cuIpcCloseMemHandle");
      return got == expected ? "yes" : "wrong data";
    } catch (RuntimeException e) {
      return "failed: " + e.getMessage();
    }
  }

  private static void speeds(LinkMeter meter) {
    List<LinkKind.Link> between = new ArrayList<>();
    List<LinkKind.Link> toGpu = new ArrayList<>();
    List<LinkKind.Link> toHost = new ArrayList<>();
    for (int i = 0; i < meter.count(); i++) {
      for (int j = 0; j < meter.count(); j++) {
        if (i != j) {
          between.addAll(meter.bandwidth(List.of(meter.between(i, j))));
        }
      }
      toGpu.addAll(meter.bandwidth(List.of(meter.toDevice(i))));
      toHost.addAll(meter.bandwidth(List.of(meter.toHost(i))));
    }
    print(
        List.of(
            new LinkKind("GPU to GPU, one way", "GB/s", true, between),
            new LinkKind("host to GPU", "GB/s", true, toGpu),
            new LinkKind("GPU to host", "GB/s", true, toHost)));
  }

  private static void print(List<LinkKind> kinds) {
    List<String> complaints = new ArrayList<>();
    for (LinkKind kind : kinds) {
      if (!kind.links().isEmpty()) {
        print(kind.name(), inBrief(kind));
        complaints.addAll(kind.complaints());
      }
    }
    if (!complaints.isEmpty()) {
      print(SLOW, String.join("; ", complaints));
    }
  }

  static String inBrief(LinkKind kind) {
    LinkKind.Link slowest =
        kind.links().stream().min(Comparator.comparingDouble(LinkKind.Link::value)).orElseThrow();
    return String.format(
        Locale.ROOT,
        "median %.1f %s, slowest %.1f (%s)",
        kind.median(),
        kind.unit(),
        slowest.value(),
        slowest);
  }
}
