package org.gradientsync.tools.doctor;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.gradientsync.tools.program.Scratch;

/** Derives problems and remedies from facts. */
final class Rules {
  private static final long LEAST_SHARED_MIB = 1024;
  private static final long LEAST_FREE_MIB = 64;

  /** What docs/troubleshooting.md has of the errors of a start; others name their remedy. */
  static final List<String> EXPLAINED =
      List.of(
          "finds itself alone",
          "has given up the start of the job",
          "timed out",
          "has died",
          "cannot be reached");

  private static final Pattern VERSION = Pattern.compile("\\d+\\.\\d+\\.\\d+");

  private final int size;
  private final boolean launched;
  private final List<Report> reports;
  private final Map<Finding, List<Integer>> found = new LinkedHashMap<>();
  private Report report; // that is looked at, or null for all

  private Rules(int size, boolean launched, List<Report> reports) {
    this.size = size;
    this.launched = launched;
    this.reports = reports;
  }

  /**
   * Returns the verdicts.
   *
   * @param size the number of ranks
   * @param launched whether mpirun or another launcher started them
   * @param reports the reports that arrived
   */
  static List<Finding> of(int size, boolean launched, List<Report> reports) {
    return new Rules(size, launched, reports).findings();
  }

  private List<Finding> findings() {
    missing();
    for (Report each : reports) {
      report = each;
      checks();
      jna();
      temporaryFolder();
      mpi();
      settings();
      cpus();
      sharedMemory();
      gpus();
      links();
      reducer();
    }
    sharedGpus();
    report = null;
    different(Host.JDK, "version", "start all ranks with the same JDK: set JAVA_HOME");
    different(Mpi.MPI, Mpi.LIBRARY, "use one Open MPI on all nodes, the one of mpirun");
    List<Finding> findings = new ArrayList<>();
    found.forEach(
        (finding, ranks) ->
            findings.add(
                new Finding(
                    finding.isProblem(), finding.what(), finding.remedy(), List.copyOf(ranks))));
    return findings;
  }

  private void problem(String what, String remedy) {
    add(true, what, remedy);
  }

  private void hint(String what, String remedy) {
    add(false, what, remedy);
  }

  /** Adds a finding. Ranks with the same finding share one entry. */
  private void add(boolean problem, String what, String remedy) {
    List<Integer> ranks =
        found.computeIfAbsent(
            new Finding(problem, what, remedy, List.of()), key -> new ArrayList<>());
    if (report != null && !ranks.contains(report.rank())) {
      ranks.add(report.rank());
    }
  }

  /** Returns what stands after {@code no: }, {@code none: } and their like. */
  private static String reason(String value) {
    return value.substring(value.indexOf(": ") + 2);
  }

  private void missing() {
    List<Integer> missing = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      int number = rank;
      if (reports.stream().noneMatch(report -> report.rank() == number)) {
        missing.add(rank);
      }
    }
    if (!missing.isEmpty()) {
      problem(
          "no facts came from " + Ranks.text(missing),
          "see whether these ranks have printed a page of their own, or have been started at all;"
              + " on several nodes facts travel by MPI only");
    }
  }

  private void checks() {
    report
        .facts()
        .section(Clock.CHECKS)
        .forEach(
            (name, outcome) -> {
              if (name.equals(Clock.ITSELF)) {
                problem(
                    "doctor " + outcome + ", so facts are missing",
                    "mpirun ends all ranks when one has failed: read what the others say; otherwise"
                        + " run doctor again");
              } else {
                problem(
                    "the check of " + name + " " + outcome,
                    "run doctor again; if it stays so, what it tries hangs or fails in your"
                        + " programs, too");
              }
            });
  }

  private void jna() {
    String jna = report.get(Host.JDK, Host.JNA);
    if (jna.startsWith("no: ")) {
      String[] parts = reason(jna).split("; ", 2);
      problem(
          "JNA cannot be used: " + parts[0],
          parts.length > 1 ? parts[1] : "MPI's C library and NCCL are called with it");
    }
  }

  /** Without one nothing can be tried, and what was to be tried may be sound. */
  private void temporaryFolder() {
    report.facts().copy().values().stream()
        .flatMap(section -> section.values().stream())
        .filter(value -> value.contains(Scratch.NO_FOLDER))
        .map(value -> value.substring(value.indexOf(Scratch.NO_FOLDER)).replaceAll("\\d{6,}", "*"))
        .findFirst()
        .ifPresent(
            value ->
                problem(
                    "nothing can be tried: " + value,
                    "let this user write there, or name another folder by"
                        + " JAVA_OPTS=-Djava.io.tmpdir=DIR"));
  }

  private void mpi() {
    String bindings = report.get(Mpi.MPI, Mpi.BINDINGS);
    String mpirun = report.get(Mpi.MPI, Mpi.MPIRUN);
    boolean installed = !mpirun.isEmpty() && !mpirun.equals(Mpi.NOT_FOUND);
    if (!bindings.isEmpty()
        && !bindings.equals(Mpi.USABLE)
        && !bindings.contains(Scratch.NO_FOLDER)) {
      String what = "Open MPI's Java bindings cannot be used: " + bindings;
      String remedy =
          "mpi.jar and libmpi_java must be of the same Open MPI, the one of mpirun:"
              + " docs/open-mpi.md says where they are; or leave mpi.jar off the class path";
      if (Mpi.callsLibrary(report.facts())) {
        hint(what, "ranks call MPI's C library instead; docs/open-mpi.md has the details");
      } else if (launched || installed) {
        problem(what, remedy);
      } else {
        hint(what, "it matters only under mpirun; " + remedy);
      }
    }
    String library = version(report.get(Mpi.MPI, Mpi.LIBRARY));
    if (installed && !library.isEmpty() && !version(mpirun).equals(library)) {
      problem(
          "mpirun and the library are of different versions: mpirun=%s, library=%s"
              .formatted(version(mpirun), library),
          "put the Open MPI that has the Java bindings first on the PATH, and its lib folder first"
              + " in LD_LIBRARY_PATH");
    }
    String aware = report.get(Mpi.MPI, Mpi.CUDA_AWARE);
    if (aware.startsWith("no, tried")) {
      hint(
          "Open MPI does not take device memory: " + reason(aware),
          "only the reducer cuda-aware needs it; docs/open-mpi.md says how to build Open MPI with"
              + " CUDA");
    }
  }

  /** Extracts a version, for example {@code 4.1.4}, from a longer line. */
  static String version(String text) {
    Matcher matcher = VERSION.matcher(text);
    return matcher.find() ? matcher.group() : "";
  }

  private void settings() {
    if (!launched) {
      return; // without MPI this process does not start UCX
    }
    String signals = report.get(Host.SETTINGS, Host.UCX_SIGNALS);
    if (signals.equals(Host.NOT_SET) || signals.contains("SEGV")) {
      problem(
          "UCX would take signals that the JVM needs for crashes: UCX_ERROR_SIGNALS=" + signals,
          "export UCX_ERROR_SIGNALS= (empty) before mpirun; gradient-sync run does it");
    }
  }

  private void cpus() {
    String seen = report.get(Host.CPU, "CPUs that the JVM sees");
    String online = report.get(Host.MACHINE, "CPUs");
    if (seen.equals("1") && online.matches(".*[-,].*")) {
      problem(
          "the JVM sees only one of this machine's CPUs: online=" + online,
          "under mpirun give --bind-to none; otherwise see taskset, numactl and the container's"
              + " limits");
    }
  }

  private void sharedMemory() {
    String usable = report.get(Host.SHM, "usable");
    String remedy = "in a container give --shm-size=8g, or --ipc=host; otherwise remount /dev/shm";
    if (usable.startsWith("no")) {
      problem("/dev/shm cannot be used: " + reason(usable), remedy);
      return;
    }
    String sized = report.get(Host.SHM, "size");
    String free = report.get(Host.SHM, "free");
    if (mebibytes(sized) < LEAST_SHARED_MIB) {
      problem("/dev/shm is small: size=" + sized, remedy);
    } else if (mebibytes(free) < LEAST_FREE_MIB) {
      problem(
          "/dev/shm is nearly full: size=" + sized + ", free=" + free,
          "delete what programs have left behind in /dev/shm");
    }
  }

  private static double mebibytes(String text) {
    String[] parts = text.split(" ");
    return parts.length == 2
        ? Double.parseDouble(parts[0]) * (parts[1].equals("GiB") ? 1024 : 1)
        : Double.MAX_VALUE; // unknown
  }

  private void gpus() {
    String usable = report.get(Gpus.GPUS, Gpus.USABLE);
    String driver = report.get(Gpus.GPUS, Gpus.DRIVER);
    String hidden = report.get(Host.SETTINGS, "CUDA_VISIBLE_DEVICES");
    boolean wantsNone = hidden.equals("-1") || hidden.equals("(empty)");
    boolean driven = !driver.isEmpty() && !driver.equals(Gpus.NO_DRIVER) && !wantsNone;
    boolean crashed = usable.startsWith("no: a trial process");
    if (usable.contains(Scratch.NO_FOLDER)) {
      return;
    }
    if (usable.startsWith("no: ") && (driven || crashed)) {
      problem(
          "the GPUs cannot be used: " + reason(usable),
          "see whether nvidia-smi works here, and look at CUDA_VISIBLE_DEVICES; in a container give"
              + " --gpus all");
    }
    for (String library : List.of(Gpus.CUBLAS, Gpus.NVRTC)) {
      String state = report.get(Gpus.GPUS, library);
      if (state.startsWith("no: ")) {
        hint(
            library + " cannot be used: " + reason(state),
            "only programs that call it need it, averaging does not; put CUDA 12's lib64 folder"
                + " into LD_LIBRARY_PATH");
      }
    }
  }

  private void links() {
    report
        .facts()
        .section(Gpus.LINKS)
        .forEach(
            (name, value) -> {
              String what = name + " " + value;
              if (name.equals(GpuLinks.SLOW)) {
                problem(
                    "links are slow: " + value,
                    "run gradient-sync links while nothing else uses the GPUs; if it says the"
                        + " same, look at nvidia-smi nvlink --status and nvidia-smi topo -m");
              } else if (value.contains("wrong data")) {
                problem(
                    "copies from GPU to GPU give wrong data: " + what,
                    "switch off the IOMMU, or PCIe's access control (ACS), in BIOS or kernel");
              } else if (name.endsWith(GpuLinks.MAPPED) && value.contains("failed")) {
                problem(
                    "processes cannot map each other's GPU memory (CUDA IPC): " + what,
                    "containers need --ipc=host and --pid=host, and all ranks the same"
                        + " CUDA_VISIBLE_DEVICES");
              } else if (value.contains("failed") || name.equals("trial")) {
                problem(
                    "a trial between GPUs failed: " + what,
                    "run gradient-sync links while nothing else uses the GPUs");
              } else if (value.contains("through the host")) {
                hint(
                    "there is no peer access: " + what,
                    "the reducer peer needs NVLink between all GPUs: see nvidia-smi topo -m");
              }
            });
  }

  private void reducer() {
    String chosen = report.get(JobMember.REDUCER, JobMember.CHOSEN);
    if (chosen.startsWith("none: ") && !chosen.contains(Scratch.NO_FOLDER)) {
      problem(
          "a sync could not be created: " + reason(chosen),
          chosen.contains("did not end within")
              ? "the ranks do not come together: see whether one is missing or has another problem,"
                  + " and 'create does not return' in docs/troubleshooting.md"
              : EXPLAINED.stream().anyMatch(chosen::contains)
                  ? "look for this text in docs/troubleshooting.md"
                  : "see what the reason says");
    } else if (chosen.matches("(not tried|none): .*") || chosen.isEmpty()) {
      return; // another finding gives the reason
    }
    String ranks = report.get(JobMember.REDUCER, JobMember.RANKS);
    if (size > 1 && ranks.equals("1")) {
      problem(
          "each rank takes itself for the only one: ranks=1, started=" + size,
          "the library is not of the Open MPI whose mpirun started it: compare prefix and mpirun"
              + " above, and docs/open-mpi.md");
    }
    boolean onGpu = report.get(JobMember.REDUCER, JobMember.DEVICE).startsWith("cuda");
    if (Gpus.areUsable(report.facts()) && ranks.matches("\\d+") && !onGpu) {
      problem(
          "this rank sees GPUs, but all work in host memory: device="
              + report.get(JobMember.REDUCER, JobMember.DEVICE),
          "every rank needs a GPU, and gradientsync.device must not be host");
    }
    String peer = report.get(JobMember.REDUCER, JobMember.NOT + "peer");
    if (onGpu && !peer.isEmpty() && size > 1) {
      hint("the fastest reducer is not used: peer: " + peer, "see what the reason says");
    }
  }

  /** Reports ranks that share a GPU. They slow each other down, or run out of memory. */
  private void sharedGpus() {
    Map<String, List<Report>> users =
        reports.stream()
            .filter(each -> each.get(JobMember.REDUCER, JobMember.DEVICE).startsWith("cuda"))
            .collect(groupingBy(Rules::gpu, TreeMap::new, toList()));
    for (List<Report> those : users.values()) {
      for (Report each : those.size() > 1 ? those : List.<Report>of()) {
        report = each;
        problem(
            "ranks share a GPU: " + each.get(JobMember.REDUCER, JobMember.DEVICE),
            "start as many ranks on each node as it has GPUs, and show all GPUs to each rank:"
                + " look at CUDA_VISIBLE_DEVICES");
      }
    }
  }

  private static String gpu(Report report) {
    String device = report.get(JobMember.REDUCER, JobMember.DEVICE);
    return report.get(Host.MACHINE, "host name") + device.substring(device.lastIndexOf('('));
  }

  private void different(String section, String name, String remedy) {
    List<String> values =
        reports.stream()
            .map(report -> report.get(section, name))
            .filter(value -> !value.isEmpty())
            .distinct()
            .toList();
    if (values.size() > 1) {
      problem("the ranks differ: " + section + " " + name + "=" + values, remedy);
    }
  }
}
