package org.gradientsync.tools.doctor;

import static org.gradientsync.tools.links.DriverCall.check;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import jcuda.Pointer;
import jcuda.driver.JCudaDriver;
import org.gradientsync.cuda.CudaGpu;
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

  private GpuLinks() {}

  /** Prints facts. */
  public static void main(String[] args) {
    int count = CudaGpu.visible().size();
    List<LinkGpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      gpus.add(new LinkGpu(i, Integer.BYTES));
    }
    for (int i = 0; i < count; i++) {
      StringJoiner row = new StringJoiner(", ");
      for (int j = 0; j < count; j++) {
        if (i != j) {
          row.add("GPU " + j + ": " + copied(gpus.get(i), gpus.get(j), 1 + i * count + j));
        }
      }
      if (count > 1) {
        GpuList.print(Gpus.LINKS, "GPU " + i + COPIES, row);
      }
    }
    mapped(gpus);
    gpus.forEach(LinkGpu::close);
    try (LinkMeter meter = new LinkMeter(count, BYTES, REPEATS)) {
      speeds(meter);
    }
  }

  /** Copies a number, and checks that it arrives. */
  private static String copied(LinkGpu from, LinkGpu to, int number) {
    try {
      boolean access = from.enableAccess(to) && to.enableAccess(from);
      write(from, number);
      check(
          JCudaDriver.cuMemcpyPeer(
              to.target(), to.context(), from.source(), from.context(), Integer.BYTES),
          "cuMemcpyPeer",
          from.what() + ", to=" + to.name());
      int[] got = new int[1];
      to.makeCurrent();
      check(
          JCudaDriver.cuMemcpyDtoH(Pointer.to(got), to.target(), Integer.BYTES),
          "cuMemcpyDtoH",
          to.what());
      if (got[0] != number) {
        return "wrong data";
      }
      return access ? STRAIGHT : "through the host";
    } catch (RuntimeException e) {
      return "failed: " + e.getMessage();
    }
  }

  private static void write(LinkGpu gpu, int number) {
    gpu.makeCurrent();
    check(
        JCudaDriver.cuMemcpyHtoD(gpu.source(), Pointer.to(new int[] {number}), Integer.BYTES),
        "cuMemcpyHtoD",
        gpu.what());
  }

  /** Makes another process map each GPU's memory. */
  private static void mapped(List<LinkGpu> gpus) {
    String[] handles = new String[gpus.size()];
    try {
      for (int i = 0; i < handles.length; i++) {
        write(gpus.get(i), GpuImport.NUMBER + i);
        handles[i] = GpuImport.export(gpus.get(i));
      }
    } catch (RuntimeException e) {
      GpuList.print(Gpus.LINKS, "GPU 0" + MAPPED, "failed: " + e.getMessage());
      return;
    }
    ChildProcess.Result trial =
        ChildProcess.java(GpuImport.class.getName(), handles).run(Duration.ofSeconds(8));
    Facts.read(trial.output())
        .section(Gpus.LINKS)
        .forEach((name, value) -> GpuList.print(Gpus.LINKS, name, value));
    if (!trial.isGood()) {
      GpuList.print(Gpus.LINKS, "another process" + MAPPED, "failed: " + trial.failure());
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
        GpuList.print(Gpus.LINKS, kind.name(), inBrief(kind));
        complaints.addAll(kind.complaints());
      }
    }
    if (!complaints.isEmpty()) {
      GpuList.print(Gpus.LINKS, SLOW, String.join("; ", complaints));
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
