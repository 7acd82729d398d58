package org.gradientsync.tools.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tools.GradientSyncCommand;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.ToolException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Starts the ranks of a job. */
@Command(
    name = "run",
    description = {
      "Starts the ranks of a job with mpirun, mpiexec or srun, and with the settings that they"
          + " need; or without MPI, if there is none.",
      ""
    },
    exitCodeList = {
      "0:All ranks ended well; with --min-np, the last one did.",
      "2:The command line asks for something that cannot be.",
      "3:The job cannot run on this machine.",
      "75:A rank was lost, as the others noticed; with --min-np, too few were left for --wait"
          + " seconds.",
      "128+N:A rank was ended by signal N; after SIGTERM to one, what the others end with counts.",
      "130, 143:Ctrl-C, or SIGTERM to this command, and ranks that did not end well then; the job is"
          + " not started again.",
      "other:That of the rank that failed first, if the launcher says it; with --min-np, that of the"
          + " last one. 255 if ssh cannot connect."
    })
public final class RunCommand extends Program {
  private static final String OWN_CLASS_PATH = System.getProperty("java.class.path");
  private static final String TCP = "tcp";
  private static final Set<String> OWN = Set.of("doctor", "perf");

  @Spec private CommandSpec spec;

  @Option(
      names = {"-np", "-n"},
      paramLabel = "RANKS",
      required = true,
      description = "How many ranks on all nodes together.")
  private int ranks;

  @Option(
      names = {"--class-path", "-cp", "-classpath"},
      paramLabel = "PATH",
      description = "Folders and jars, as java takes them.")
  private String classPath;

  @Option(names = "-jar", description = "The program is a jar that names its main class.")
  private boolean jar;

  @Option(
      names = {"-m", "--module"},
      description = "The program is MODULE/CLASS, or MODULE if it names its main class.")
  private boolean module;

  @Option(
      names = {"--module-path", "-p"},
      paramLabel = "PATH",
      description = "Folders and modules for -m, as java takes them.")
  private String modulePath;

  @Option(
      names = "--threads",
      description =
          "Run the ranks as threads of one JVM. The main class needs: public static void"
              + " run(GradientSync sync, String[] args).")
  private boolean threads;

  @Option(
      names = "--restarts",
      paramLabel = "N",
      defaultValue = "0",
      description =
          "Start the job again when a rank was lost, at most N times; the program resumes from its"
              + " checkpoint (default: ${DEFAULT-VALUE}).")
  private int restarts;

  @Option(
      names = "--min-np",
      paramLabel = "RANKS",
      description =
          "Without MPI: go on when ranks are lost, start them again, and let them join the others;"
              + " with fewer than these the job waits. For programs that use ElasticTraining.")
  private Integer minRanks;

  @Option(
      names = "--wait",
      paramLabel = "SECONDS",
      defaultValue = "60",
      description =
          "How long fewer ranks than --min-np wait for others, before the job ends with code 75"
              + " (default: ${DEFAULT-VALUE}).")
  private int wait;

  @Option(
      names = "--hosts",
      paramLabel = "HOST:N,...",
      description =
          "The hosts, each with its number of ranks. Without MPI they are reached by ssh.")
  private String hosts;

  @Option(
      names = "--hostfile",
      paramLabel = "FILE",
      description = "A file with the hosts, in the launcher's format.")
  private Path hostFile;

  @Option(names = "--oversubscribe", description = "Allow more ranks than there are cores.")
  private boolean oversubscribe;

  @Option(
      names = "--launcher",
      paramLabel = "NAME",
      description =
          "mpirun, mpiexec, srun or a path, or tcp for none of them (default: what the PATH has,"
              + " otherwise tcp).")
  private String launcher;

  @Option(
      names = "--nnodes",
      paramLabel = "N",
      defaultValue = "1",
      description =
          "Without MPI: how many nodes; give this command once on each (default:"
              + " ${DEFAULT-VALUE}).")
  private int nodes;

  @Option(
      names = "--node-rank",
      paramLabel = "N",
      defaultValue = "0",
      description = "Without MPI: the number of this node, from 0 (default: ${DEFAULT-VALUE}).")
  private int nodeRank;

  @Option(
      names = "--master",
      paramLabel = "HOST:PORT",
      description =
          "Without MPI: where the first rank of node 0 listens (with --hosts by default at a port"
              + " of the first host).")
  private String master;

  @Option(
      names = "-x",
      paramLabel = "NAME[=VALUE]",
      description = "Pass a variable of the environment to the ranks of other nodes, too.")
  private List<String> variables = List.of();

  @Option(
      names = "--jvm-option",
      paramLabel = "OPTION",
      description = "An option of the ranks' JVMs, as --jvm-option=-Xmx4g. JAVA_OPTS has more.")
  private List<String> jvmOptions = List.of();

  @Option(
      names = "-D",
      paramLabel = "NAME=VALUE",
      description = "A system property of the ranks: -Dgradientsync.timeout=90.")
  private List<String> properties = List.of();

  @Option(
      names = "--prefix",
      negatable = true,
      defaultValue = "true",
      fallbackValue = "true",
      description = "Begin each line of output with its rank, as in [2] (default: do).")
  private boolean prefix;

  @Option(names = "--dry-run", description = "Print settings and command, and start nothing.")
  private boolean dryRun;

  @Parameters(
      paramLabel = "MAIN [ARGUMENT]",
      arity = "1..*",
      description =
          "The main class, or the jar with -jar, or the module with -m, or doctor or perf; its"
              + " arguments follow.")
  private List<String> program;

  private final Map<String, String> environment;

  /** For picocli. */
  public RunCommand() {
    this(System.getenv());
  }

  RunCommand(Map<String, String> environment) {
    this.environment = environment;
  }

  @Override
  public int runProgram() throws InterruptedException {
    Machine machine = Machine.here(environment);
    LauncherSearch search = new LauncherSearch(machine.variable("PATH"));
    boolean overTcp = !threads && isOverTcp(search);
    JobRequest request = request(machine);
    if (overTcp && request.hosts() != null) {
      search.requireSsh();
    }
    LaunchPlan plan =
        overTcp ? LaunchPlan.overTcp(request, machine) : plan(request, machine, search);
    plan.environment().putAll(new RankVariables(variables).values());
    if (dryRun) {
      print("%s", plan.text());
      return 0;
    }
    JobRunner runner = new JobRunner();
    int code =
        new Restarts(restarts, spec.commandLine().getErr())
            .run(
                () ->
                    runner.run(
                        overTcp ? overTcp(plan, request, machine) : new LauncherProcess(plan)));
    return runner.ownCode(code);
  }

  private RankLaunch overTcp(LaunchPlan plan, JobRequest request, Machine machine) {
    boolean elastic = minRanks != null;
    if (request.hosts() == null) {
      int count = ranks / nodes;
      return new RanksAsProcesses(
          new RanksAsProcesses.Share(ranks, nodeRank * count, count, master, elastic, false),
          plan.environment(),
          plan.command(),
          plan::prefix,
          ProcessBuilder.Redirect.INHERIT);
    }
    Map<String, String> all = new HashMap<>(machine.environment());
    all.keySet().retainAll(request.forwarded());
    all.putAll(plan.environment());
    all.remove(RanksAsProcesses.SECRET);
    String secret = new RankVariables(variables).secret(environment);
    if (!secret.isBlank()) {
      all.put(RanksAsProcesses.SECRET, secret);
    }
    List<String> java = List.of(machine.java().toString(), "-cp", OWN_CLASS_PATH);
    return new RanksOverSsh(request.hosts().filled(ranks), master, elastic, all, plan, java);
  }

  /** Returns whether to run a subcommand of this command, which needs no class path. */
  private boolean isOwn() {
    return classPath == null && !jar && !module && OWN.contains(program.get(0));
  }

  private ProgramFiles files() {
    List<String> arguments = program.subList(1, program.size());
    if (isOwn()) {
      return ProgramFiles.onClassPath(OWN_CLASS_PATH, GradientSyncCommand.class.getName(), program);
    }
    if (module) {
      return ProgramFiles.inModule(modulePath, classPath, program.get(0), arguments);
    }
    return jar
        ? ProgramFiles.inJar(program.get(0), arguments)
        : ProgramFiles.onClassPath(classPath, program.get(0), arguments);
  }

  @Override
  public void checkCommandLine() {
    if (ranks < 1) {
      throw ToolException.badUse("-np takes 1 or more ranks: -np %s", ranks);
    }
    if (threads && ranks > LocalRanks.MAX_RANKS) {
      throw ToolException.badUse(
          "--threads takes up to %s ranks: -np %s", LocalRanks.MAX_RANKS, ranks);
    }
    if (restarts < 0) {
      throw ToolException.badUse("--restarts takes 0 or more: --restarts %s", restarts);
    }
    if (isOwn() && ServiceLoader.load(Program.class).findFirst().isEmpty()) {
      throw ToolException.badUse("the tools have not been built: run mvn package first");
    }
    if (module != (modulePath != null) || module && jar) {
      throw ToolException.badUse(
          "a program in a module needs both, and no -jar: give -m MODULE/CLASS and --module-path"
              + " PATH");
    }
    if (module && threads) {
      throw ToolException.badUse(
          "--threads takes a program on the class path: give --class-path in place of -m");
    }
    if (!module && jar == (classPath != null) && !isOwn()) {
      throw ToolException.badUse(
          jar
              ? "-jar has a class path of its own: give -jar or --class-path"
              : "the class path is missing: give --class-path PATH, or -jar");
    }
    checkNodes();
    checkElastic();
    requireNames("-x", "an environment variable", variables);
    requireNames("-D", "a system property", properties);
    if (jvmOptions.stream().anyMatch(String::isBlank)) {
      throw ToolException.badUse(
          "--jvm-option takes an option of java, as in --jvm-option=-Xmx4g: it is empty");
    }
    if (hosts != null && hostFile != null) {
      throw ToolException.badUse("the hosts are given twice: give --hosts or --hostfile");
    }
    if (hostFile != null && !Files.isRegularFile(hostFile)) {
      throw ToolException.badUse("there is no such file: --hostfile %s", hostFile);
    }
    if (threads && (hosts != null || hostFile != null || launcher != null)) {
      throw ToolException.badUse(
          "--threads starts one JVM on this machine, without launcher and hosts");
    }
  }

  private void checkNodes() {
    if (nodes < 1 || nodeRank < 0 || nodeRank >= nodes || ranks % nodes != 0) {
      throw ToolException.badUse(
          "each node has a number and as many ranks: -np %s, --nnodes %s, --node-rank %s; number"
              + " the nodes from 0, and give -np the ranks of all nodes",
          ranks, nodes, nodeRank);
    }
    if (hosts != null && nodes > 1) {
      throw ToolException.badUse(
          "--hosts starts the ranks of all nodes, and --nnodes those of one: give one of them");
    }
    if (nodes > 1 && master == null) {
      throw ToolException.badUse("several nodes need one address: give --master HOST:PORT to each");
    }
    if (master != null && !master.matches(".+:\\d{1,5}")) {
      throw ToolException.badUse("--master takes HOST:PORT: --master %s", master);
    }
    int port = master == null ? 1 : Integer.parseInt(master.replaceFirst(".*:", ""));
    if (port < 1 || port >= 1 << 16) {
      throw ToolException.badUse("--master takes a port from 1 to 65535: --master %s", master);
    }
    if (nodes > 1 && new RankVariables(variables).secret(environment).isBlank()) {
      throw ToolException.badUse(
          "several nodes need a secret: set the environment variable GRADIENTSYNC_SECRET to the"
              + " same long random text on each");
    }
    boolean ofMpi = launcher != null && !launcher.equals(TCP) || hostFile != null;
    if (ofMpi && (nodes > 1 || master != null)) {
      throw ToolException.badUse(
          "--nnodes and --master are for jobs without MPI: give them without --launcher and hosts");
    }
    if (TCP.equals(launcher) && hostFile != null) {
      throw ToolException.badUse(
          "a job without MPI takes no file of hosts: give --hosts a:2,b:2 in place of --hostfile"
              + " %s",
          hostFile);
    }
  }

  private void checkElastic() {
    if (minRanks == null) {
      if (spec.commandLine().getParseResult().hasMatchedOption("--wait")) {
        throw ToolException.badUse("--wait is for --min-np: give both, or none");
      }
      return;
    }
    if (minRanks < 1 || minRanks > ranks || wait < 1) {
      throw ToolException.badUse(
          "--min-np takes 1 to all of the ranks, and --wait 1 second or more: -np %s, --min-np %s,"
              + " --wait %s",
          ranks, minRanks, wait);
    }
    boolean ofMpi = launcher != null && !launcher.equals(TCP);
    if (threads || hostFile != null || ofMpi) {
      throw ToolException.badUse(
          "--min-np is for processes without MPI, which can be started again and join: give"
              + " --launcher tcp, and --hosts in place of a file of hosts");
    }
  }

  private boolean isOverTcp(LauncherSearch search) {
    boolean isAsked = TCP.equals(launcher) || minRanks != null || nodes > 1 || master != null;
    boolean mayHaveMpi = launcher != null || hostFile != null || hosts != null && !search.hasSsh();
    return isAsked || !mayHaveMpi && search.isEmpty();
  }

  private void requireNames(String option, String what, List<String> settings) {
    for (String setting : settings) {
      if (!setting.matches("(?s)[^=\\s]+(=.*)?")) {
        throw ToolException.badUse(
            "%s takes %s, NAME or NAME=VALUE: %s '%s'", option, what, option, setting);
      }
    }
  }

  private JobRequest request(Machine machine) {
    Hosts places = hosts == null ? null : Hosts.parse(hosts);
    if (places != null && places.ranks() < ranks && !oversubscribe) {
      throw ToolException.badUse(
          "the hosts are for fewer ranks: -np %s, --hosts %s; give each host its number of ranks,"
              + " or --oversubscribe",
          ranks, hosts);
    }
    return new JobRequest(
        ranks,
        places,
        hostFile,
        oversubscribe,
        prefix && !threads && !isOwn(), // of those only rank 0 prints
        new RankVariables(variables).names(),
        files(),
        options(machine));
  }

  private LaunchPlan plan(JobRequest request, Machine machine, LauncherSearch search) {
    if (threads) {
      return LaunchPlan.threads(request, machine, OWN_CLASS_PATH);
    }
    MpiInstallation mpi = search.find(launcher);
    if (request.hosts() != null) {
      request.hosts().requireNames();
    }
    Optional<Path> bindings =
        JavaBindings.folder(
            mpi, request.program(), request.jvmOptions(), machine.variable("LD_LIBRARY_PATH"));
    return LaunchPlan.processes(request, mpi, machine, bindings);
  }

  private List<String> options(Machine machine) {
    List<String> options = new ArrayList<>();
    for (String option : machine.variable("JAVA_OPTS").split("\\s+")) {
      if (!option.isEmpty()) {
        options.add(option);
      }
    }
    options.addAll(jvmOptions);
    if (minRanks != null) {
      options.add("-Dgradientsync.elastic=true");
      options.add("-Dgradientsync.elastic.min=" + minRanks);
      options.add("-Dgradientsync.elastic.wait=" + wait);
    }
    properties.forEach(property -> options.add("-D" + property));
    return options;
  }
}
