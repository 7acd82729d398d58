package org.gradientsync.tools.links;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.driver.JCudaDriver;
import org.gradientsync.tools.program.Program;

/** Measures the links of all GPUs that this process sees. */
public final class LinkMeter implements AutoCloseable {
  /** The size of the copies that measure latency. */
  static final int SMALL_BYTES = 4;

  /** The number of small copies in a row, large enough to make the events' own time negligible. */
  static final int SMALL_COPIES = 100;

  /** A copy that keeps a stream busy for longer than the host needs to enqueue a few others. */
  private static final long HOLDING_BYTES = 64L << 20;

  private static final int MOST_HOLDS = 16;

  private static final String HOST = "host";

  private final long bytes;
  private final int repeats;
  private final List<LinkGpu> gpus = new ArrayList<>();
  private final boolean[][] access;
  private final Pointer host = new Pointer();

  /**
   * Opens GPUs 0 to {@code count} - 1. If that fails, the process is to end.
   *
   * @param count how many GPUs
   * @param bytes the size of each copy that measures bandwidth
   * @param repeats the number of measurements for each median
   */
  public LinkMeter(int count, long bytes, int repeats) {
    this.bytes = bytes;
    this.repeats = repeats;
    access = new boolean[count][count];
    for (int i = 0; i < count; i++) {
      gpus.add(new LinkGpu(i, Math.max(bytes, HOLDING_BYTES)));
    }
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count; j++) {
        access[i][j] = i != j && gpus.get(i).enableAccess(gpus.get(j));
      }
    }
    LinkGpu first = gpus.get(0);
    first.makeCurrent();
    first.check(
        JCudaDriver.cuMemHostAlloc(host, 2 * bytes, JCudaDriver.CU_MEMHOSTALLOC_PORTABLE),
        "cuMemHostAlloc of " + 2 * bytes + " bytes");
  }

  public int count() {
    return gpus.size();
  }

  /** Returns a large copy between GPUs, made by the sending one. */
  public LinkCopy between(int from, int to) {
    return between(from, to, bytes);
  }

  private LinkCopy between(int sender, int receiver, long size) {
    LinkGpu from = gpus.get(sender);
    LinkGpu to = gpus.get(receiver);
    return new LinkCopy(
        from,
        from.toString(),
        to.toString(),
        !access[sender][receiver] || !access[receiver][sender],
        stream ->
            JCudaDriver.cuMemcpyPeerAsync(
                to.target(), to.context(), from.source(), from.context(), size, stream));
  }

  /** Returns a large copy from the first half of the host's memory. */
  public LinkCopy toDevice(int number) {
    LinkGpu gpu = gpus.get(number);
    return new LinkCopy(
        gpu,
        HOST,
        gpu.toString(),
        false,
        stream -> JCudaDriver.cuMemcpyHtoDAsync(gpu.target(), host, bytes, stream));
  }

  /** Returns a large copy to the second half of the host's memory. */
  public LinkCopy toHost(int number) {
    LinkGpu gpu = gpus.get(number);
    Pointer half = host.withByteOffset(bytes);
    return new LinkCopy(
        gpu,
        gpu.toString(),
        HOST,
        false,
        stream -> JCudaDriver.cuMemcpyDtoHAsync(half, gpu.source(), bytes, stream));
  }

  /** Measures copies that run at the same time: GB/s of each, the median of all repeats. */
  public List<LinkKind.Link> bandwidth(List<LinkCopy> copies) {
    double[][] rates = new double[copies.size()][repeats];
    try (Lanes opened = Lanes.of(copies)) {
      List<LinkLane> lanes = opened.lanes();
      for (int repeat = -1; repeat < repeats; repeat++) { // the first one warms up
        runTogether(copies, lanes);
        for (int i = 0; i < copies.size() && repeat >= 0; i++) {
          rates[i][repeat] = bytes / lanes.get(i).seconds() / 1e9;
        }
      }
    }
    return IntStream.range(0, copies.size())
        .mapToObj(i -> copies.get(i).measured(Program.median(rates[i])))
        .toList();
  }

  /** The streams of copies that run at the same time. */
  private record Lanes(List<LinkLane> lanes) implements AutoCloseable {
    static Lanes of(List<LinkCopy> copies) {
      return new Lanes(copies.stream().map(copy -> new LinkLane(copy.gpu())).toList());
    }

    @Override
    public void close() {
      lanes.forEach(LinkLane::close);
    }
  }

  /** Starts all copies together, after a first one during which the host enqueues them. */
  private static void runTogether(List<LinkCopy> copies, List<LinkLane> lanes) {
    LinkLane first = lanes.get(0);
    first.enqueue(copies.get(0));
    first.end();
    for (LinkLane lane : lanes) {
      lane.waitForEndOf(first);
    }
    for (int i = 0; i < copies.size(); i++) {
      lanes.get(i).start();
      lanes.get(i).enqueue(copies.get(i));
      lanes.get(i).end();
    }
    lanes.forEach(LinkLane::await);
  }

  /** Measures a small copy among others in the same stream: microseconds, the median. */
  LinkKind.Link latency(int from, int to) {
    LinkCopy small = between(from, to, SMALL_BYTES);
    LinkCopy holding = between(from, to, HOLDING_BYTES);
    double[] times = new double[repeats];
    try (LinkLane lane = new LinkLane(gpus.get(from))) {
      int holds = 1;
      int repeat = -1; // the first one warms up
      while (repeat < repeats) {
        lane.await();
        Collections.nCopies(holds, holding).forEach(lane::enqueue);
        lane.start();
        Collections.nCopies(SMALL_COPIES, small).forEach(lane::enqueue);
        lane.end();
        // If the GPU reached the start before the host had enqueued all, it waited for the host,
        // and that time is not the link's.
        boolean late = lane.hasStarted();
        lane.await();
        if (late && holds < MOST_HOLDS) {
          holds *= 2;
          continue;
        }
        if (repeat >= 0) {
          times[repeat] = lane.seconds() * 1e6 / SMALL_COPIES;
        }
        repeat++;
      }
    }
    return small.measured(Program.median(times));
  }

  @Override
  public void close() {
    LinkGpu first = gpus.get(0);
    first.makeCurrent();
    first.check(JCudaDriver.cuMemFreeHost(host), "cuMemFreeHost");
    gpus.forEach(LinkGpu::close);
  }
}
