package org.gradientsync.tools.perf;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * The cost of one call for the calling thread: CPU time, elapsed time, and bytes of Java objects
 * allocated.
 */
record HostCost(double cpuNanos, double wallNanos, double bytes) {
  /** Makes one call several times, and returns the mean cost. */
  static HostCost of(int times, Runnable call) {
    ThreadMXBean thread = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    thread.getCurrentThreadCpuTime(); // now, because the first queries allocate
    thread.getCurrentThreadAllocatedBytes();
    long bytes = thread.getCurrentThreadAllocatedBytes();
    long cpu = thread.getCurrentThreadCpuTime();
    long wall = System.nanoTime();
    for (int i = 0; i < times; i++) {
      call.run();
    }
    wall = System.nanoTime() - wall;
    cpu = thread.getCurrentThreadCpuTime() - cpu;
    bytes = thread.getCurrentThreadAllocatedBytes() - bytes;
    return new HostCost((double) cpu / times, (double) wall / times, (double) bytes / times);
  }

  /** Returns the cost of one of several equal parts of the call. */
  HostCost dividedBy(int parts) {
    return new HostCost(cpuNanos / parts, wallNanos / parts, bytes / parts);
  }
}
