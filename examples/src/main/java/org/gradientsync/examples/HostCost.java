package org.gradientsync.examples;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/**
 * What calls cost the thread that makes them, each: the time that it computed, the time that went
 * by, and the bytes of Java objects that it allocated.
 */
record HostCost(double cpuNanos, double wallNanos, double bytes) {
  /** Makes one call so many times. */
  static HostCost of(int times, Runnable call) {
    ThreadMXBean thread = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    thread.getCurrentThreadCpuTime(); // what the first questions allocate is not the calls'
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

  /** The same for a part of what was called. */
  HostCost dividedBy(int parts) {
    return new HostCost(cpuNanos / parts, wallNanos / parts, bytes / parts);
  }
}
