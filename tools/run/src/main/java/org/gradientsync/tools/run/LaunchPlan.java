package org.gradientsync.tools.run;

import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * How a job is started: a command, variables that are added to its environment, and the settings in
 * them. Immutable; starts nothing.
 *
 * @param launcher the launcher's kind, or null without one
 * @param title the launcher, for users
 * @param prefixed whether each line begins with its rank; launchers tag lines in any case
 */
record LaunchPlan(
    LauncherKind launcher,
    String title,
    List<String> command,
    Map<String, String> environment,
    List<Setting> settings,
    boolean prefixed) {
  /** The number of ranks, so that one that finds itself alone does not train alone. */
  static final String RANKS = "GRADIENTSYNC_RUN_RANKS";

  private static final String HIDDEN = "=***";
  private static final String SECRET = "(?:secret|password|token|key)";
  private static final Pattern SECRET_NAME = Pattern.compile("(?i).*" + SECRET);
  private static final Pattern SECRET_PROPERTY =
      Pattern.compile("(?is)(-D[^=\\s]*" + SECRET + ")=.*");

  private static final String LIBRARIES = "LD_LIBRARY_PATH";
  private static final String UCX = "UCX_ERROR_SIGNALS";
  private static final String BTL = "OMPI_MCA_btl";

  /** Variables of torchrun and its like, which ranks of an MPI would follow to another job. */
  private static final List<String> OF_TORCHRUN =
      List.of("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");

  private static final String ONE_NODE = "^tcp,ofi";

  /** Open MPI takes 4 MiB of /dev/shm for each rank, and what is left is for messages. */
  private static final long SHARED_BYTES = 5L << 20;

  /** Variables of systems that may give a job several nodes. */
  private static final List<String> ALLOCATIONS =
      List.of(
          "PBS_NODEFILE",
          "LSB_DJOB_HOSTFILE",
          "PE_HOSTFILE",
          "OMPI_MCA_orte_default_hostfile",
          "PRTE_MCA_prte_default_hostfile");

  /** Plans ranks as processes. */
  static LaunchPlan processes(
      JobRequest request, MpiInstallation mpi, Machine machine, Optional<Path> bindings) {
    Building plan = new Building(request, machine);
    plan.nativeAccess();
    plan.hostMemory();
    plan.binding(mpi);
    plan.ucx();
    plan.libraries(mpi, bindings);
    if (mpi.kind() == LauncherKind.OPEN_MPI) {
      plan.network(mpi);
    }
    if (mpi.kind() == LauncherKind.HYDRA
        && request.program().mpiJar().isThere()
        && JavaBindings.binding(request.jvmOptions()).isEmpty()) {
      plan.jvm.add("-Dgradientsync.mpi.binding=direct"); // mpi.jar is Open MPI's
    }
    List<String> unset = plan.unset();
    plan.environment.put(RANKS, Integer.toString(request.ranks()));

    List<String> command = new ArrayList<>(List.of(mpi.program().toString()));
    command.addAll(
        switch (mpi.kind()) {
          case OPEN_MPI -> openMpi(request, mpi.major(), plan.environment.keySet());
          case HYDRA -> hydra(request);
          case SLURM -> slurm(request, machine);
        });
    if (mpi.kind() == LauncherKind.OPEN_MPI || !unset.isEmpty()) {
      command.add("env"); // mpirun adds folders to the class path of what is named java
      unset.forEach(name -> command.addAll(List.of("-u", name)));
    }
    command.addAll(plan.java(program(request.program())));
    return plan.plan(mpi.kind(), mpi.toString(), command);
  }

  /** Plans ranks as processes that find each other over TCP; the command is that of a rank. */
  static LaunchPlan overTcp(JobRequest request, Machine machine) {
    Building plan = new Building(request, machine);
    plan.nativeAccess();
    plan.hostMemory();
    plan.environment.put(RANKS, Integer.toString(request.ranks()));
    String title = "none: the ranks find each other over TCP";
    if (request.hosts() != null) {
      title = "ssh to each host: the ranks find each other over TCP";
      String filled = new Hosts(request.hosts().filled(request.ranks())).withSlots();
      plan.set(filled, "how many ranks each host has");
    }
    plan.set("RANK, WORLD_SIZE, MASTER_ADDR and so on", "each rank has its own");
    return plan.plan(null, title, plan.java(program(request.program())));
  }

  /**
   * Plans ranks as threads of one JVM.
   *
   * @param tools the class path of this command, behind the user's
   */
  static LaunchPlan threads(JobRequest request, Machine machine, String tools) {
    Building plan = new Building(request, machine);
    plan.nativeAccess();
    plan.hostMemory();
    ProgramFiles program = request.program();
    List<String> main = new ArrayList<>();
    main.add("-cp");
    main.add(program.classPath() + File.pathSeparator + tools);
    main.add(RanksAsThreads.class.getName());
    main.add(Integer.toString(request.ranks()));
    main.add(program.mainClass());
    main.addAll(program.arguments());
    return plan.plan(null, "none: the ranks are threads of one JVM", plan.java(main));
  }

  private static List<String> program(ProgramFiles program) {
    List<String> words = new ArrayList<>();
    if (program.modulePath() != null) {
      words.addAll(List.of("--module-path", program.modulePath()));
      if (program.classPath() != null) {
        words.addAll(List.of("-cp", program.classPath()));
      }
      words.addAll(List.of("--module", program.mainClass()));
      words.addAll(program.arguments());
      return words;
    }
    words.addAll(
        program.isJar()
            ? List.of("-jar", program.classPath())
            : List.of("-cp", program.classPath(), program.mainClass()));
    words.addAll(program.arguments());
    return words;
  }

  private static List<String> openMpi(JobRequest request, int major, Set<String> variables) {
    List<String> words = new ArrayList<>(List.of("-np", "" + request.ranks()));
    words.addAll(List.of("--bind-to", "none"));
    words.addAll(major >= 5 ? List.of("--output", "tag") : List.of("--tag-output"));
    if (request.oversubscribed()) {
      words.addAll(major >= 5 ? List.of("--map-by", ":OVERSUBSCRIBE") : List.of("--oversubscribe"));
    }
    if (request.hosts() != null) {
      words.addAll(List.of("--host", request.hosts().withSlots()));
    }
    if (request.hostFile() != null) {
      words.addAll(List.of("--hostfile", request.hostFile().toString()));
    }
    Set<String> forwarded = new LinkedHashSet<>(variables);
    forwarded.addAll(request.forwarded());
    forwarded.stream()
        .filter(name -> !name.startsWith("OMPI_")) // mpirun passes those on by itself
        .forEach(name -> words.addAll(List.of("-x", name)));
    return words;
  }

  private static List<String> hydra(JobRequest request) {
    List<String> words = new ArrayList<>(List.of("-np", "" + request.ranks()));
    words.addAll(List.of("-prepend-pattern", PrefixedOutput.HYDRA_PATTERN));
    if (request.hosts() != null) {
      words.addAll(List.of("-hosts", request.hosts().withSlots()));
    }
    if (request.hostFile() != null) {
      words.addAll(List.of("-f", request.hostFile().toString()));
    }
    return words;
  }

  private static List<String> slurm(JobRequest request, Machine machine) {
    List<String> words = new ArrayList<>(List.of("-n", "" + request.ranks()));
    if (machine.variable("SLURM_MPI_TYPE").isEmpty()) {
      words.add("--mpi=pmix");
    }
    words.addAll(List.of("--cpu-bind=none", "--kill-on-bad-exit=1"));
    words.add("--label");
    if (request.oversubscribed()) {
      words.add("--overcommit");
    }
    if (request.hosts() != null) {
      words.add("--nodes=" + request.hosts().slots().size());
      words.add("--distribution=arbitrary");
      words.add("--nodelist=" + request.hosts().ofEachRank());
    }
    if (request.hostFile() != null) {
      words.add("--distribution=arbitrary");
      words.add("--nodelist=" + request.hostFile().toAbsolutePath());
    }
    return words;
  }

  /** Returns what begins the lines of a rank. */
  String prefix(int rank) {
    return prefixed ? "[" + rank + "] " : "";
  }

  /** Returns what {@code --dry-run} prints. */
  String text() {
    StringBuilder text = new StringBuilder("launcher: " + title + "\nsettings:\n");
    settings.forEach(
        s -> text.append("  ").append(s.text()).append("   # ").append(s.reason()).append('\n'));
    StringBuilder words = new StringBuilder();
    environment.forEach(
        (name, value) ->
            words
                .append(' ')
                .append(SECRET_NAME.matcher(name).matches() ? name + HIDDEN : shown(name, value)));
    command.forEach(word -> words.append(' ').append(word.isEmpty() ? "''" : shown("", word)));
    if (words.indexOf(HIDDEN) >= 0) {
      text.append("  ***   # a secret of -x, -D or a variable; put it in to use the command\n");
    }
    return text.append("command:\n ").append(words).toString();
  }

  /** Returns a word for the shell, with a name before it, and no secret of a property in it. */
  private static String shown(String name, String word) {
    String text = SECRET_PROPERTY.matcher(word).replaceFirst("$1" + HIDDEN);
    return (name.isEmpty() ? "" : name + "=") + quoted(text);
  }

  /** Quotes a word for the shell. */
  private static String quoted(String word) {
    return word.matches("[\\w@%+=:,./^-]+") || word.isEmpty()
        ? word
        : "'" + word.replace("'", "'\\''") + "'";
  }

  /** A plan that is being made. */
  private static final class Building {
    private final JobRequest request;
    private final Machine machine;
    private final List<String> jvm = new ArrayList<>();
    private final Map<String, String> environment = new LinkedHashMap<>();
    private final List<Setting> settings = new ArrayList<>();

    Building(JobRequest request, Machine machine) {
      this.request = request;
      this.machine = machine;
    }

    void nativeAccess() {
      String option = "--enable-native-access=" + request.program().nativeModules();
      String reason =
          "without it Java 22 and 23 call libmpi slower, and later ones warn of native libraries";
      if (machine.javaVersion() >= 22) {
        jvm.add(option);
        set(option, reason);
      } else {
        set(option + " is not needed: Java " + machine.javaVersion(), reason);
      }
    }

    void hostMemory() {
      String name = "-XX:MaxDirectMemorySize";
      String reason = "buffers in host memory may take what the machine or its container has";
      boolean given =
          String.join(" ", request.jvmOptions()).contains(name)
              || machine.variable("JDK_JAVA_OPTIONS").contains(name)
              || machine.variable("JAVA_TOOL_OPTIONS").contains(name);
      for (String options : List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")) {
        if (machine.variable(options).contains(name)) {
          environment.put(options, machine.variable(options)); // for ranks of other nodes
        }
      }
      if (given) {
        set(name + " is the user's", reason);
      } else {
        jvm.add(name + "=" + machine.memoryKilobytes() + "k");
        set(name + "=" + machine.memoryKilobytes() + "k", reason);
      }
    }

    void binding(MpiInstallation mpi) {
      String text =
          switch (mpi.kind()) {
            case OPEN_MPI -> "--bind-to none";
            case HYDRA -> "no binding: this mpiexec binds no rank by itself";
            case SLURM -> "--cpu-bind=none";
          };
      set(text, "a JVM that is bound to one core has one thread for compiling and collecting");
    }

    void ucx() {
      String reason = "UCX would take the JVM's own SIGSEGV for a crash";
      if (machine.environment().containsKey(UCX)) {
        environment.put(UCX, machine.variable(UCX)); // ranks of other nodes need it, too
        set(UCX + "=" + machine.variable(UCX) + " is the user's", reason);
      } else {
        environment.put(UCX, "");
        set(UCX + "=", reason);
      }
    }

    /** Returns the variables that the ranks do not get. */
    List<String> unset() {
      List<String> names =
          OF_TORCHRUN.stream()
              .filter(machine.environment()::containsKey)
              .filter(name -> !request.forwarded().contains(name))
              .toList();
      if (!names.isEmpty()) {
        set("without " + String.join(", ", names), "ranks would look for those of another job");
      }
      return names;
    }

    void libraries(MpiInstallation mpi, Optional<Path> bindings) {
      String reason = "the libmpi_java of this mpirun, for mpi.jar";
      if (bindings.isEmpty()) {
        set(LIBRARIES + " is left alone: ranks call libmpi, or find it by themselves", reason);
        return;
      }
      String before = machine.variable(LIBRARIES);
      String path = bindings.get() + (before.isEmpty() ? "" : File.pathSeparator + before);
      environment.put(LIBRARIES, path);
      set(LIBRARIES + "=" + path, reason);
    }

    void network(MpiInstallation mpi) {
      String reason = "ranks of one node need not listen on the network";
      if (!machine.variable(BTL).isEmpty()) {
        set(BTL + "=" + machine.variable(BTL) + " is the user's", reason);
      } else if (isOneNode(mpi) && machine.sharedBytes() < request.ranks() * SHARED_BYTES) {
        set(
            BTL + " is not set: /dev/shm has too little room, free=" + machine.sharedBytes(),
            "ranks that share no memory need the network");
      } else if (isOneNode(mpi)) {
        environment.put(BTL, ONE_NODE);
        set(BTL + "=" + ONE_NODE, reason);
      } else {
        set(BTL + " is not set: there may be several nodes", reason);
      }
    }

    private boolean isOneNode(MpiInstallation mpi) {
      if (request.hostFile() != null) {
        return false;
      }
      if (request.hosts() != null) {
        return request.hosts().slots().size() == 1;
      }
      String nodes = machine.variable("SLURM_NNODES");
      return (nodes.isEmpty() || nodes.equals("1"))
          && ALLOCATIONS.stream().allMatch(name -> machine.variable(name).isEmpty())
          && !mpi.hasDefaultHosts();
    }

    private void set(String text, String reason) {
      settings.add(new Setting(text, reason));
    }

    List<String> java(List<String> rest) {
      List<String> command = new ArrayList<>(List.of(machine.java().toString()));
      command.addAll(jvm);
      command.addAll(request.jvmOptions()); // last, so that they win
      command.addAll(rest);
      return command;
    }

    LaunchPlan plan(LauncherKind launcher, String title, List<String> command) {
      return new LaunchPlan(
          launcher,
          title,
          List.copyOf(command),
          environment,
          List.copyOf(settings),
          request.prefixed());
    }
  }
}
