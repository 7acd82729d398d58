package org.gradientsync.tools.run;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * What a plan has to know of this machine.
 *
 * @param environment the environment of this process
 * @param java the JVM of the ranks
 * @param javaVersion its version, for example 17
 * @param memoryKilobytes the machine's memory, or empty if it is unknown
 */
record Machine(
    Map<String, String> environment, Path java, int javaVersion, Optional<Long> memoryKilobytes) {
  static Machine here(Map<String, String> environment) {
    return new Machine(
        environment,
        Path.of(System.getProperty("java.home"), "bin", "java"),
        Runtime.version().feature(),
        memory(Path.of("/proc/meminfo")));
  }

  private static Optional<Long> memory(Path file) {
    try {
      return Files.readAllLines(file, StandardCharsets.US_ASCII).stream()
          .filter(line -> line.matches("MemTotal:\\s+\\d+ kB"))
          .map(line -> Long.parseLong(line.replaceAll("\\D", "")))
          .findFirst();
    } catch (IOException e) {
      return Optional.empty(); // then the JVM's own limit holds
    }
  }

  /** Returns a variable, or the empty string. */
  String variable(String name) {
    return environment.getOrDefault(name, "");
  }
}
