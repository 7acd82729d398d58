package org.gradientsync.tools.run;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * What a plan has to know of this machine.
 *
 * @param environment the environment of this process
 * @param java the JVM of the ranks
 * @param javaVersion its version, for example 17
 * @param memoryKilobytes the memory of the machine, or of its container
 * @param sharedBytes the free part of /dev/shm, or 0 if it cannot be written
 */
record Machine(
    Map<String, String> environment,
    Path java,
    int javaVersion,
    long memoryKilobytes,
    long sharedBytes) {
  static Machine here(Map<String, String> environment) {
    return new Machine(
        environment,
        Path.of(System.getProperty("java.home"), "bin", "java"),
        Runtime.version().feature(),
        memory(),
        sharedMemory(Path.of("/dev/shm")));
  }

  private static long memory() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getTotalMemorySize()
        / 1024;
  }

  private static long sharedMemory(Path folder) {
    try {
      return Files.isWritable(folder) ? Files.getFileStore(folder).getUsableSpace() : 0;
    } catch (IOException e) {
      return 0;
    }
  }

  /** Returns a variable, or the empty string. */
  String variable(String name) {
    return environment.getOrDefault(name, "");
  }
}
