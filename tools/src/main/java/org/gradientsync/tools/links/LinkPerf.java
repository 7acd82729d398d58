package org.gradientsync.tools.links;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.tools.program.ByteCount;
import org.gradientsync.tools.program.NewFile;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Measures the links between this machine's GPUs, and those to the host. */
@Command(
    name = "links",
    description = {
      "Measures the links between the GPUs of this machine and to the host.",
      "It names those that are slower than the rest of their kind.",
      "Bandwidth, in GB/s of 10^9 bytes: a large copy, timed by the GPU that does it. One way: each"
          + " pair alone. Both ways: both directions of a pair at once, the figure of each. Around"
          + " the ring: every GPU to the next one, all at once. Copies from and to the host use"
          + " page-locked memory on the part of the machine where the program runs; numactl changes"
          + " that.",
      "Latency, in microseconds: the time of a copy of "
          + LinkMeter.SMALL_BYTES
          + " bytes where "
          + LinkMeter.SMALL_COPIES
          + " of them wait in one stream, each for the one before. The host's time to enqueue them"
          + " is not in it.",
      "'no peer access' stands where a copy from GPU to GPU had to go through the host."
    },
    exitCodeList = {
      Program.RIGHT + ":All was measured; slow links are in the output.",
      Program.BAD_USE + ":The command line asks for something that cannot be.",
      Program.CANNOT_RUN + ":It could not run here, for example because there is no GPU."
    })
public class LinkPerf extends Program {
  private static final String GBS = "GB/s";
  private static final long MOST_BYTES = 1L << 30;
  private static final int MOST_REPEATS = 1000;

  @Option(
      names = "--bytes",
      paramLabel = "N",
      defaultValue = "256M",
      converter = ByteCount.class,
      description =
          "Size of the large copies; K, M and G stand for powers of 1024 (default:"
              + " ${DEFAULT-VALUE}).")
  private long bytes;

  @Option(
      names = "--repeats",
      paramLabel = "K",
      defaultValue = "9",
      description = "How often to measure; the figures are medians (default: ${DEFAULT-VALUE}).")
  private int repeats;

  @Option(names = "--json", paramLabel = "FILE", description = "Write the figures to a file, too.")
  private Path json;

  @Override
  public void checkCommandLine() {
    requireAtLeast(LinkMeter.SMALL_BYTES, "--bytes", bytes);
    requireAtMost(MOST_BYTES, "--bytes", bytes);
    requireAtLeast(1, "--repeats", repeats);
    requireAtMost(MOST_REPEATS, "--repeats", repeats);
    if (isOneOfSeveral()) {
      throw badUse(
          "gradient-sync links is one process that uses all GPUs, so run it without mpirun");
    }
  }

  @Override
  public int runProgram() {
    if (!canWrite(json)) {
      return BAD_USE;
    }
    List<CudaGpu> gpus = CudaGpu.visible();
    stage("opening the GPUs");
    List<LinkKind> kinds;
    try (LinkMeter meter = new LinkMeter(gpus.size(), bytes, repeats)) {
      kinds = measure(meter);
    }
    List<String> names = gpus.stream().map(CudaGpu::toString).toList();
    LinkReport report = new LinkReport(names, bytes, repeats, kinds);
    report.lines().forEach(line -> print("%s", line));
    boolean written =
        json == null
            || write(
                "the figures: " + names(json),
                null,
                () -> NewFile.write(json, report.json(Instant.now())));
    return written ? RIGHT : CANNOT_RUN;
  }

  private List<LinkKind> measure(LinkMeter meter) {
    List<LinkKind> kinds = new ArrayList<>();
    if (meter.count() > 1) {
      kinds.add(
          new LinkKind(
              "GPU to GPU, one way",
              GBS,
              true,
              oneWay(
                  meter,
                  "bandwidth",
                  (from, to) -> meter.bandwidth(List.of(meter.between(from, to))).get(0))));
      kinds.add(new LinkKind("GPU to GPU, both ways at once", GBS, true, bothWays(meter)));
      stage("measuring the ring");
      kinds.add(
          new LinkKind(
              "GPU to GPU, around the ring at once", GBS, true, meter.bandwidth(ring(meter))));
      kinds.add(
          new LinkKind(
              "GPU to GPU, latency", "us", false, oneWay(meter, "latency", meter::latency)));
    }
    kinds.addAll(host(meter));
    return kinds;
  }

  /** Measures each pair of GPUs alone, in one direction. */
  private List<LinkKind.Link> oneWay(
      LinkMeter meter, String what, BiFunction<Integer, Integer, LinkKind.Link> measure) {
    List<LinkKind.Link> links = new ArrayList<>();
    for (int from = 0; from < meter.count(); from++) {
      for (int to = 0; to < meter.count(); to++) {
        if (from != to) {
          stage("measuring the " + what + " of GPU " + from + " to GPU " + to);
          links.add(measure.apply(from, to));
        }
      }
    }
    return links;
  }

  private List<LinkKind.Link> bothWays(LinkMeter meter) {
    List<LinkKind.Link> links = new ArrayList<>();
    for (int one = 0; one < meter.count(); one++) {
      for (int other = one + 1; other < meter.count(); other++) {
        stage("measuring GPU " + one + " and GPU " + other + ", both ways");
        links.addAll(
            meter.bandwidth(List.of(meter.between(one, other), meter.between(other, one))));
      }
    }
    return links;
  }

  private static List<LinkCopy> ring(LinkMeter meter) {
    List<LinkCopy> copies = new ArrayList<>();
    for (int from = 0; from < meter.count(); from++) {
      copies.add(meter.between(from, (from + 1) % meter.count()));
    }
    return copies;
  }

  private List<LinkKind> host(LinkMeter meter) {
    List<LinkKind.Link> toDevice = new ArrayList<>();
    List<LinkKind.Link> toHost = new ArrayList<>();
    List<LinkKind.Link> toDeviceMeanwhile = new ArrayList<>();
    List<LinkKind.Link> toHostMeanwhile = new ArrayList<>();
    for (int gpu = 0; gpu < meter.count(); gpu++) {
      stage("measuring GPU " + gpu + " and the host");
      LinkCopy up = meter.toDevice(gpu);
      LinkCopy down = meter.toHost(gpu);
      toDevice.addAll(meter.bandwidth(List.of(up)));
      toHost.addAll(meter.bandwidth(List.of(down)));
      List<LinkKind.Link> both = meter.bandwidth(List.of(up, down));
      toDeviceMeanwhile.add(both.get(0));
      toHostMeanwhile.add(both.get(1));
    }
    return List.of(
        new LinkKind("host to GPU", GBS, true, toDevice),
        new LinkKind("GPU to host", GBS, true, toHost),
        new LinkKind("host to GPU, both ways at once", GBS, true, toDeviceMeanwhile),
        new LinkKind("GPU to host, both ways at once", GBS, true, toHostMeanwhile));
  }
}
