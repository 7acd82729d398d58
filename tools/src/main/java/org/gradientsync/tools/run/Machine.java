package org.gradientsync.tools.run;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Map;

/**
 * What a plan has to know of this machine.
 *
 * @param environment the environment of this process
 * @param java the JVM of the ranks
 * @param javaVersion its version, for example 17
 * @param memoryKilobytes the memory of the machine, or of its container
 */
record Machine(Map<String, String> environment, Path java, int javaVersion, long memoryKilobytes) {
  static Machine here(Map<String, String> environment) {
    return new Machine(
        environment,
        Path.of(System.getProperty("java.home"), "bin", "java"),
        Runtime.version().feature(),
        memory());
  }

  private static long memory() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getTotalMemorySize()
        / 1024;
  }

  /** Returns a variable, or the empty string. */
  String variable(String name) {
    return environment.getOrDefault(name, "");
  }
}
