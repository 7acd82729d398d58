package org.gradientsync.examples;

import static org.gradientsync.examples.DriverCall.check;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import jcuda.Pointer;
import jcuda.driver.JCudaDriver;

/** Measures the links of all GPUs that this process sees. */
public final class LinkMeter implements AutoCloseable {
  /** Of the copies whose latency is taken. */
  static final int SMALL_BYTES = 4;

  /** How many of them follow each other: enough that the events at both ends weigh nothing. */
  static final int SMALL_COPIES = 100;

  /** A copy that keeps a stream busy for longer than the host needs to enqueue a few others. */
  private static final long HOLDING_BYTES = 64L << 20;

  private static final int MOST_HOLDS = 16;

  private final long bytes;
  private final int repeats;
  private final List<LinkGpu> gpus = new ArrayList<>();
  private final boolean[][] access;
  private final Pointer host = new Pointer();
  private boolean hostAllocated;

  /**
   * Opens GPUs 0 to {@code count} - 1.
   *
   * @param count how many
   * @param bytes of each copy whose bandwidth is taken
   * @param repeats of which the median is taken
   */
  public LinkMeter(int count, long bytes, int repeats) {
    this.bytes = bytes;
    this.repeats = repeats;
    access = new boolean[count][count];
    try {
      for (int i = 0; i < count; i++) {
        gpus.add(new LinkGpu(i, Math.max(bytes, HOLDING_BYTES)));
      }
      for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
          access[i][j] = i != j && gpus.get(i).enableAccess(gpus.get(j));
        }
      }
      gpus.get(0).makeCurrent();
      check(
          JCudaDriver.cuMemHostAlloc(host, 2 * bytes, JCudaDriver.CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc",
          "bytes=" + 2 * bytes);
      hostAllocated = true;
    } catch (RuntimeException e) {
      try {
        close();
      } catch (RuntimeException also) {
        e.addSuppressed(also);
      }
      throw e;
    }
  }

  /**
   * How many GPUs there are.
   *
   * @return as many as were asked for
   */
  public int count() {
    return gpus.size();
  }

  /**
   * A large copy from one GPU to another.
   *
   * @param from the GPU that sends
   * @param to the GPU that receives
   * @return the copy, not yet enqueued
   */
  public LinkCopy between(int from, int to) {
    return between(from, to, bytes);
  }

  private LinkCopy between(int from, int to, long size) {
    boolean throughHost = !access[from][to] || !access[to][from];
    return LinkCopy.between(gpus.get(from), gpus.get(to), throughHost, size);
  }

  /**
   * A copy from the first half of the host's memory.
   *
   * @param gpu the GPU that receives
   * @return the copy, not yet enqueued
   */
  public LinkCopy toDevice(int gpu) {
    return LinkCopy.toDevice(host, gpus.get(gpu), bytes);
  }

  /**
   * A copy to the second half of the host's memory.
   *
   * @param gpu the GPU that sends
   * @return the copy, not yet enqueued
   */
  public LinkCopy toHost(int gpu) {
    return LinkCopy.toHost(gpus.get(gpu), host.withByteOffset(bytes), bytes);
  }

  /**
   * The bandwidth of copies that run at the same time.
   *
   * @param copies no two of them alike
   * @return GB/s of each: the median of all repeats
   */
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

  /** Streams for copies that run at the same time. */
  private record Lanes(List<LinkLane> lanes) implements AutoCloseable {
    static Lanes of(List<LinkCopy> copies) {
      return new Lanes(copies.stream().map(copy -> new LinkLane(copy.gpu())).toList());
    }

    @Override
    public void close() {
      lanes.forEach(LinkLane::close);
    }
  }

  /** All start when a first copy is over, during which the host has enqueued them. */
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

  /**
   * The time of a small copy from GPU to GPU where one follows another in a stream.
   *
   * @return microseconds: the median of all repeats
   */
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
        // If the GPU was there first, it has waited for the host, whose time is not the link's.
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
    try {
      if (hostAllocated) {
        hostAllocated = false;
        gpus.get(0).makeCurrent();
        check(JCudaDriver.cuMemFreeHost(host), "cuMemFreeHost", "bytes=" + 2 * bytes);
      }
    } finally {
      gpus.forEach(LinkGpu::close);
      gpus.clear();
    }
  }
}
