package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.gradientsync.core.backend.NativeClasses;
import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.backend.ShownEnvironment;
import org.gradientsync.mpi.MpiTrial;
import org.gradientsync.spi.Availability;
import org.gradientsync.tools.program.HostName;

/** Checks the JDK, the machine and the settings of this process. Loads no natives. */
final class Host {
  static final String JDK = "JDK";
  static final String JNA = "JNA";
  static final String MACHINE = "Machine";
  static final String CPU = "CPU binding";
  static final String SHM = "/dev/shm";
  static final String SETTINGS = "Settings";
  static final String UCX_SIGNALS = "UCX_ERROR_SIGNALS";
  static final String NOT_SET = "not set";

  /** Other variables that affect the library's programs. */
  private static final String[] VARIABLES = {
    "UCX_",
    "OMPI_MCA_",
    "OPAL_PREFIX",
    "CUDA_",
    "NVIDIA_",
    "LD_LIBRARY_PATH",
    "JAVA_OPTS",
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS"
  };

  private static final Set<String> COMMANDS =
      Set.of("JAVA_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS");

  private static final Pattern SHOWN_OPTION =
      Pattern.compile(
          "-X(m[nsx]|ss|int|comp|rs|log|share)[^\\s=]*"
              + "|-XX:[+-]\\w+|-XX:\\w+=[\\w.]+"
              + "|-D(java\\.library\\.path|java\\.io\\.tmpdir|jna\\.tmpdir|gradientsync\\.\\w+)=\\S*"
              + "|--(add-opens|add-exports|add-modules|enable-native-access)=[\\w./=,-]+");

  private static final int PROBE_BYTES = 1 << 20;

  private Host() {}

  static void jdk(Facts facts) {
    facts.add(JDK, "version", Runtime.version());
    facts.add(JDK, "vendor", System.getProperty("java.vendor"));
    facts.add(JDK, "home", System.getProperty("java.home"));
    facts.add(
        JDK,
        "options",
        Facts.joined(
            ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .map(Host::shown)
                .toList()));
    facts.add(JDK, "max heap", bytes(Runtime.getRuntime().maxMemory()));
    String failure = NativeClasses.jnaFailure(Host.class);
    facts.add(JDK, JNA, failure == null ? "usable" : "no: " + failure);
  }

  /**
   * Returns a JVM option for the page. Users send pages to others, so it hides values that may be
   * secret.
   */
  static String shown(String option) {
    return SHOWN_OPTION.matcher(option).matches()
        ? option
        : option.split("[=\\s]", 2)[0] + (option.contains("=") ? "=(not shown)" : "");
  }

  static void machine(Facts facts) throws IOException {
    facts.add(MACHINE, "host name", HostName.get());
    facts.add(
        MACHINE,
        "operating system",
        String.join(
            " ",
            System.getProperty("os.name"),
            System.getProperty("os.version"),
            System.getProperty("os.arch")));
    String release = valueIn(Path.of("/etc/os-release"), "PRETTY_NAME=").replace("\"", "");
    if (!release.isEmpty()) {
      facts.add(MACHINE, "distribution", release);
    }
    facts.add(MACHINE, "CPUs", firstLine(Path.of("/sys/devices/system/cpu/online")));
    facts.add(MACHINE, "memory", valueIn(Path.of("/proc/meminfo"), "MemTotal:"));
  }

  static void cpus(Facts facts) throws IOException {
    facts.add(CPU, "allowed CPUs", valueIn(Path.of("/proc/self/status"), "Cpus_allowed_list:"));
    facts.add(CPU, "CPUs that the JVM sees", Runtime.getRuntime().availableProcessors());
  }

  /** Checks whether /dev/shm is usable, and writes a file there. */
  static void sharedMemory(Facts facts) throws IOException {
    Path folder = Path.of(SHM);
    Availability usable = NodeIdentity.canShareMemory();
    facts.add(SHM, "usable", usable.usable() ? "yes" : "no: " + usable.reason());
    if (!usable.usable()) {
      return;
    }
    FileStore store = Files.getFileStore(folder);
    facts.add(SHM, "size", bytes(store.getTotalSpace()));
    facts.add(SHM, "free", bytes(store.getUsableSpace()));
    try {
      Path file = Files.createTempFile(folder, "gradient-sync-doctor-", "");
      try {
        Files.write(file, new byte[PROBE_BYTES]);
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      facts.add(SHM, "usable", "no: writing failed: " + e);
    }
  }

  static void settings(Facts facts) {
    settings(System.getenv(), facts);
    properties(System.getProperties(), facts);
  }

  static void properties(Map<?, ?> properties, Facts facts) {
    new TreeMap<>(properties)
        .forEach(
            (key, value) -> {
              String name = key.toString();
              if (name.startsWith("gradientsync.")) {
                String shown =
                    name.contains("secret")
                        ? "(secret)"
                        : ShownEnvironment.valueOf(value.toString());
                facts.add(SETTINGS, "-D" + name, shown);
              }
            });
  }

  static void settings(Map<String, String> environment, Facts facts) {
    Map<String, String> own = new LinkedHashMap<>(new TreeMap<>(environment));
    MpiTrial.forgetJob(own); // mpirun's own variables are not the user's choice
    facts.add(SETTINGS, UCX_SIGNALS, NOT_SET);
    Map<String, String> shown = ShownEnvironment.of(own);
    own.keySet().stream()
        .filter(COMMANDS::contains)
        .forEach(name -> shown.put(name, ShownEnvironment.HIDDEN));
    shown.forEach(
        (name, value) -> {
          if (Arrays.stream(VARIABLES).anyMatch(name::startsWith)) {
            facts.add(SETTINGS, name, value.isEmpty() ? "(empty)" : value);
          }
        });
  }

  static String bytes(long bytes) {
    return bytes < 1L << 30
        ? String.format(Locale.ROOT, "%.0f MiB", bytes / 1048576.0)
        : String.format(Locale.ROOT, "%.1f GiB", bytes / 1073741824.0);
  }

  /** Returns the rest of the first line with this start, or the empty string. */
  static String valueIn(Path file, String start) throws IOException {
    if (!Files.isReadable(file)) {
      return "";
    }
    return Files.readAllLines(file).stream()
        .filter(line -> line.startsWith(start))
        .map(line -> line.substring(start.length()).strip())
        .findFirst()
        .orElse("");
  }

  static String firstLine(Path file) throws IOException {
    return valueIn(file, "");
  }
}
