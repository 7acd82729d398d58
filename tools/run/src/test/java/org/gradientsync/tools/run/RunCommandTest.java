package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.spi.ToolProvider;
import java.util.zip.ZipEntry;
import org.gradientsync.tools.GradientSyncCommand;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** Tests what the command says to bad input, with launchers that only tell their version. */
class RunCommandTest {
  private static final String MAIN = RunCommandTest.class.getName();

  @TempDir Path folder;

  private final Map<String, String> environment = new HashMap<>();
  private Path classes;
  private String out;

  @BeforeEach
  void findClasses() throws Exception {
    classes =
        Path.of(RunCommandTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    environment.put("PATH", folder.resolve("bin") + ":" + folder.resolve("bin2") + ":/nowhere");
  }

  @Test
  void theCommandIsPlanned() throws IOException {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    launcher("bin/mpiexec", FakeLaunchers.OPEN_MPI_4);
    environment.put("JAVA_OPTS", " -Xmx1g  -Done");
    run(
        0,
        "--dry-run",
        "-x",
        "A=b c",
        "-Dtwo=2",
        "--jvm-option=-Done.more=1",
        "-cp",
        classes + "",
        MAIN,
        "-x",
        "--dry-run");
    assertTrue(
        out.startsWith("launcher: " + folder.resolve("bin/mpirun") + " (Open MPI 4.1.4)"), out);
    assertTrue(out.contains(" A='b c' " + folder.resolve("bin/mpirun") + " -np 2 "), out);
    assertTrue(out.contains(" -Xmx1g -Done -Done.more=1 -Dtwo=2 -cp "), out);
    assertTrue(out.strip().endsWith(MAIN + " -x --dry-run"), out);
  }

  @Test
  void secretsAreNotShown() throws IOException {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    String[] secrets = {"-x", "GRADIENTSYNC_SECRET=s3 cret", "-Dgradientsync.tcp.secret=s3 cret"};
    for (String name : List.of("mpirun", "tcp")) {
      dry(0, secrets[0], secrets[1], secrets[2], "-x", "OTHER=seen", "--launcher", name);
      assertFalse(out.contains("s3"), out);
      assertTrue(out.contains(" GRADIENTSYNC_SECRET=*** OTHER=seen "), out);
      assertTrue(out.contains(" '-Dgradientsync.tcp.secret=***' -cp "), out);
      assertTrue(out.contains("\n  ***   # a secret of -x, -D or a variable; put it in "), out);
    }
    dry(0, "--nnodes=2", "--master=a:1", secrets[0], secrets[1]);
    dry(0, "-x", "OTHER=seen");
    assertFalse(out.contains("***"), out);
  }

  @Test
  void aProgramInAModuleIsPlannedAndRuns() throws Exception {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    Path modules = folder.resolve("modules");
    for (String name : List.of("app", "com.sun.jna")) { // the latter calls native code
      Path sources = Files.createDirectories(folder.resolve("src/" + name + "/app"));
      Path module = sources.resolveSibling("module-info.java");
      Files.writeString(module, "module " + name + " {}");
      Path main = sources.resolve("Main.java");
      Files.writeString(
          main,
          "package app; public class Main { public static void main(String[] args) {"
              + " System.out.println(Main.class.getModule() + \" \" + String.join(\" \", args)); }"
              + " }");
      List<String> javac = new ArrayList<>(List.of("-d", modules.resolve(name) + "", module + ""));
      javac.addAll(name.equals("app") ? List.of(main + "") : List.of());
      int code =
          ToolProvider.findFirst("javac")
              .orElseThrow()
              .run(System.out, System.err, javac.toArray(String[]::new));
      assertEquals(0, code);
    }
    run(0, "--dry-run", "--module-path", modules + "", "-m", "app/app.Main", "one", "--two");
    String command = out.strip().substring(out.strip().lastIndexOf(" env ") + 5);
    String end = " --module-path " + modules + " --module app/app.Main one --two";
    assertTrue(command.endsWith(end), out);
    Process java = new ProcessBuilder("sh", "-c", command).redirectErrorStream(true).start();
    String printed = new String(java.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertTrue(printed.contains("module app one --two"), printed);
    run(0, "--dry-run", "-p", modules + "", "-cp", classes + "", "-m", "app/app.Main");
    assertTrue(
        out.contains(" --module-path " + modules + " -cp " + classes + " --module app"), out);
    assertEquals("com.sun.jna", natives(modules, null));
    assertEquals("com.sun.jna,ALL-UNNAMED", natives(modules, classes + ""));
    for (String[] bad :
        new String[][] {
          {
            "the module path has no such module: module=other",
            "-p",
            modules + "",
            "-m",
            "other/a.B"
          },
          {"the module has no such class: -m app/a.B", "-p", modules + "", "-m", "app/a.B"},
          {"the module path has an entry that does not exist", "-p", "/nowhere", "-m", "app/a.B"},
          {"a program in a module needs both", "-m", "app/app.Main"},
          {"a program in a module needs both", "-p", modules + "", "-cp", classes + "", MAIN},
          {"--threads takes a program on the class path", "--threads", "-p", "a", "-m", "b/c"}
        }) {
      String said = run(2, Arrays.copyOfRange(bad, 1, bad.length));
      assertTrue(said.contains(bad[0]), said);
    }
  }

  private static String natives(Path modules, String classPath) {
    return ProgramFiles.inModule(modules + "", classPath, "app", List.of()).nativeModules();
  }

  @Test
  void oneLauncherIsEnough() throws IOException {
    launcher("bin2/mpiexec.hydra", FakeLaunchers.HYDRA);
    dry(0);
    assertTrue(
        out.startsWith("launcher: " + folder.resolve("bin2/mpiexec.hydra") + " (MPICH 4.0.2)"),
        out);
    launcher("bin/mpiexec", FakeLaunchers.OPEN_MPI_5);
    dry(0);
    assertTrue(out.contains("(Open MPI 5.0.7)"), out);
    launcher("bin/srun", FakeLaunchers.SLURM);
    dry(0, "--launcher", "srun");
    assertTrue(out.contains("srun (Slurm 22.05.8)"), out);
    Path intel = launcher("intel/mpirun", FakeLaunchers.INTEL);
    dry(0, "--launcher", intel.toString());
    assertTrue(out.contains("(MPICH 2021.11)"), out);
  }

  @Test
  void withoutALauncherRanksFindEachOtherOverTcp() throws IOException {
    dry(0);
    assertTrue(out.startsWith("launcher: none: the ranks find each other over TCP"), out);
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_5);
    dry(0, "--launcher", "tcp");
    assertTrue(out.startsWith("launcher: none: the ranks find each other over TCP"), out);
    says(2, "several nodes need one address", "--nnodes", "2");
    says(2, "each node has a number and as many ranks", "--nnodes", "2", "--node-rank", "2");
    says(2, "--master takes HOST:PORT: --master node0", "--master", "node0");
    says(2, "a port from 1 to 65535: --master node0:0", "--master", "node0:0");
    says(2, "a port from 1 to 65535: --master node0:70000", "--master", "node0:70000");
    says(2, "several nodes need a secret", "--nnodes", "2", "--master", "node0:29500");
  }

  @Test
  void hostsWithoutALauncherAreReachedBySsh() throws IOException {
    String[] hosts = {"--launcher", "tcp", "--hosts", "a,b:2"};
    says(3, "there is no ssh, which starts the ranks of other hosts: PATH=", hosts);
    launcher("bin/ssh", "");
    dry(0, hosts);
    assertTrue(
        out.startsWith("launcher: ssh to each host: the ranks find each other over TCP"), out);
    assertTrue(out.contains("\n  a:1,b:1   # how many ranks each host has\n"), out);
    dry(0, "--hosts", "a,b:2", "--master", "a:1");
    assertTrue(out.contains("\n  a:1,b:1   # "), out);
    says(
        2,
        "--hosts starts the ranks of all nodes",
        "--hosts",
        "a:2",
        "--nnodes",
        "2",
        "--master",
        "a:1");
    Path file = Files.createFile(folder.resolve("file"));
    says(
        2,
        "a job without MPI takes no file of hosts",
        "--launcher",
        "tcp",
        "--hostfile",
        "" + file);
  }

  @Test
  void hostsAreFilledInTheirOrder() {
    Hosts hosts = Hosts.parse("a:2,b:1,c:2");
    assertEquals(Map.of("a", 2, "b", 1), hosts.filled(3));
    assertEquals(List.of("a", "b", "c"), List.copyOf(hosts.filled(4).keySet()));
    assertEquals(Map.of("a", 4, "b", 2, "c", 3), hosts.filled(9));
  }

  @Test
  void hostsMayBeIpv6Addresses() throws IOException {
    Hosts hosts = Hosts.parse("[::1],me@[fe80::1%eth0]:2,node[1-3]:3");
    assertEquals(Map.of("[::1]", 1, "me@[fe80::1%eth0]", 2, "node[1-3]", 3), hosts.slots());
    assertEquals(
        List.of("::1", "me@fe80::1%eth0", "node[1-3]"),
        hosts.slots().keySet().stream().map(Hosts::forSsh).toList());
    String[] over = {"--launcher", "tcp", "--hosts"};
    for (String bare : List.of("::1", "a,me@fe80::1%eth0", "fe80::1:2", "::ffff:10.0.0.1")) {
      says(2, "--hosts takes IPv6 addresses in brackets, as in [::1]:2: ", "--hosts", bare);
    }
    for (String bad : List.of("[::1", "[::1]2", "[::1]:0", "[::g]:2:", "[a:b]:2")) {
      says(2, "--hosts takes host names, each with its number", over[0], over[1], over[2], bad);
    }
    launcher("bin/ssh", "");
    dry(0, over[0], over[1], over[2], "[::1]:2");
    assertTrue(out.contains("\n  '[::1]:2'   # ") || out.contains("\n  [::1]:2   # "), out);
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    says(2, "MPI's launchers take no IPv6 addresses: --hosts [::1]; give", "--hosts", "[::1]:2");
  }

  @Test
  void launchersThatCannotBeAreNamed() throws IOException {
    says(
        3,
        "there is no mpirun, mpiexec or srun: PATH=" + folder,
        "--hosts",
        "node1:2"); // and no ssh
    says(2, "there is no such launcher: --launcher srun, PATH=", "--launcher", "srun");
    launcher("bin/srun", "srun: fatal: Could not establish a configuration source", 1);
    says(3, "there is no Slurm here that srun could reach", "--launcher", "srun");
    launcher("bin/mpirun", "mpirun 0.1 of my own");
    says(3, "no launcher on the PATH is of a known MPI: " + folder + "/bin/mpirun --version says");
    says(
        3,
        "mpirun --version says 'mpirun 0.1 of my own'; name the mpirun of Open MPI",
        "--launcher",
        "mpirun");
    launcher("bin2/mpirun", "another");
    Files.createSymbolicLink(folder.resolve("bin2/mpiexec"), folder.resolve("bin2/mpirun"));
    says(
        3,
        "a known MPI: "
            + (folder + "/bin/mpirun --version says 'mpirun 0.1 of my own', ")
            + (folder + "/bin2/mpirun --version says 'another', ")
            + (folder
                + "/bin/srun --version says 'srun: fatal: Could not establish a configuration")
            + " source'; name the mpirun");
    launcher("bin2/mpirun", FakeLaunchers.OPEN_MPI_5);
    dry(0);
    assertTrue(out.startsWith("launcher: " + folder + "/bin2/mpirun (Open MPI 5.0.7)"), out);
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    launcher("bin2/mpiexec", FakeLaunchers.HYDRA);
    says(3, "the PATH has two MPIs of different kinds: ");
    says(
        2,
        "there is no such launcher: --launcher /nowhere/mpirun",
        "--launcher",
        "/nowhere/mpirun");
  }

  @Test
  void librariesOfAnotherMpiAreNamed() throws IOException {
    Path openMpi = launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    Path hydra = launcher("bin/mpiexec.hydra", FakeLaunchers.HYDRA);
    String mpich = "-Dgradientsync.mpi.binding=/x/libmpi.so.12";
    says(2, "the launcher and the library are of different MPIs: launcher=" + openMpi, mpich);
    says(
        2,
        "choose the Open MPI of the library",
        "--launcher",
        hydra.toString(),
        "-Dgradientsync.mpi.binding=/x/libmpi.so.40.30.4");
    says(
        2,
        "Open MPI's Java bindings take ranks of Open MPI's mpirun only",
        "--launcher",
        hydra.toString(),
        "-Dgradientsync.mpi.binding=java");

    Path other = jar("other.jar", null, "mpi/MPI.class");
    Path real = bindings("void Init_jni();");
    String text = run(3, "--dry-run", "-cp", classes + ":" + other, MAIN);
    assertTrue(text.contains("an mpi.jar that is not Open MPI's: file=" + other), text);
    launcher("bin/ompi_info", "path:libdir:" + folder.resolve("lib"));
    String path = classes + ":" + real;
    text = run(3, "--dry-run", "-cp", path, MAIN);
    assertTrue(
        text.contains("this mpirun's Open MPI has no libmpi_java.so: launcher=" + openMpi), text);
    assertTrue(text.contains("looked in=" + folder.resolve("lib") + ";"), text);
    run(0, "--dry-run", "-Dgradientsync.mpi.binding=direct", "-cp", path, MAIN);
    Files.createDirectories(folder.resolve("lib"));
    Path library = folder.resolve("lib/libmpi_java.so");
    Files.writeString(library, "\0Java_mpi_MPI_Init_1jni\0");
    run(0, "--dry-run", "-cp", path, MAIN);
    assertTrue(out.contains(" LD_LIBRARY_PATH=" + folder.resolve("lib")), out);
  }

  /** As the alternatives of Debian: the command, the choice, the installation, its own link. */
  @Test
  void whatBelongsToALauncherIsFoundThroughLinks() throws IOException {
    Path real = launcher("mpi/prrte/mpirun", FakeLaunchers.OPEN_MPI_4);
    Path link = Files.createDirectories(folder.resolve("mpi/bin")).resolve("mpirun");
    Files.createSymbolicLink(link, Path.of("../prrte").resolve(real.getFileName()));
    Path choice = Files.createDirectories(folder.resolve("alternatives")).resolve("mpirun");
    Files.createSymbolicLink(choice, link);
    Files.createDirectories(folder.resolve("bin"));
    Files.createSymbolicLink(folder.resolve("bin/mpirun"), choice);
    Path library = Files.createDirectories(folder.resolve("lib")).resolve("libmpi_java.so");
    Files.writeString(library, "\0Java_mpi_MPI_a\0");
    Path info = launcher("info/ompi_info.openmpi", "path:libdir:" + library.getParent());
    Files.createSymbolicLink(folder.resolve("mpi/bin/ompi_info"), info);
    run(0, "--dry-run", "-cp", classes + ":" + bindings("void a()"), MAIN);
    assertTrue(out.contains(" LD_LIBRARY_PATH=" + library.getParent()), out);
  }

  /** The ompi_info of this machine must not speak for another Open MPI. */
  @Test
  void anOpenMpiThatTellsNothingHasNoLibraries() throws IOException {
    launcher("bin/mpirun", "mpirun (Open MPI) 4.0.99");
    String text = run(3, "-cp", classes + ":" + bindings("void a()"), MAIN);
    assertTrue(text.contains("this mpirun's Open MPI has no libmpi_java.so: launcher="), text);
    assertTrue(text.contains(", looked in=nothing that ompi_info names;"), text);
  }

  @Test
  void bindingsOfAnotherReleaseAreNamed() throws IOException {
    Path launcher = launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    launcher("bin/ompi_info", "path:libdir:" + folder.resolve("lib"));
    Path library = Files.createDirectories(folder.resolve("lib")).resolve("libmpi_java.so");
    String path =
        classes + ":" + bindings("long getAbort(); native void a(int b); native void a()");
    for (String fits : List.of("getAbort\0Java_mpi_MPI_a__\0", "a__I\0Java_mpi_MPI_getAbort\0")) {
      Files.writeString(library, "\0Java_mpi_MPI_" + fits);
      run(0, "--dry-run", "-cp", path, MAIN);
    }
    Files.writeString(library, "\0Java_mpi_MPI_getAborted\0Java_mpi_MPI_a\0");
    String text = run(3, "-cp", path, MAIN);
    assertTrue(text.contains("are of different releases of Open MPI: file=" + folder), text);
    assertTrue(text.contains("Java_mpi_MPI_getAbort, which is not in " + library + ";"), text);
    assertTrue(text.contains("give the mpi.jar of " + launcher + " (Open MPI 4.1.4), "), text);
    run(0, "--dry-run", "-Dgradientsync.mpi.binding=direct", "-cp", path, MAIN);

    Path other = Files.createDirectories(folder.resolve("other")).resolve("libmpi_java.so");
    Files.writeString(other, "\0Java_mpi_MPI_getAbort\0Java_mpi_MPI_a\0");
    run(0, "--dry-run", "-Djava.library.path=/no:" + other.getParent(), "-cp", path, MAIN);
    launcher("bin/ompi_info", "path:libdir:/no/folder");
    environment.put("LD_LIBRARY_PATH", library.getParent().toString());
    run(3, "-cp", path, MAIN);

    Path broken = jar("broken.jar", null, "mpi/MPI.class", "mpi/Freeable.class");
    text = run(3, "-cp", classes + ":" + broken, MAIN);
    assertTrue(text.contains("the mpi.jar cannot be loaded: file=" + broken + ", error="), text);
  }

  /** Compiles bindings with these native methods. */
  private Path bindings(String methods) throws IOException {
    Path source = Files.createDirectories(folder.resolve("source")).resolve("MPI.java");
    Files.writeString(
        source,
        "package mpi; interface Freeable {} class Comm {} class Errhandler {}"
            + " class MPI { static { if (true) throw new Error(); } native "
            + methods
            + "; }");
    Path target = Files.createTempDirectory(folder, "bindings");
    ToolProvider compiler = ToolProvider.findFirst("javac").orElseThrow();
    assertEquals(0, compiler.run(System.out, System.err, "-d", target + "", source + ""));
    return target;
  }

  @Test
  void programsThatAreNotThereAreNamed() throws IOException {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    String typo = folder.resolve("clases") + ":" + classes;
    String text = run(2, "-cp", typo, MAIN);
    assertTrue(
        text.contains("entry that does not exist: entry=" + folder.resolve("clases") + ", "), text);
    text = run(2, "-cp", folder + "/lib/*", MAIN);
    assertTrue(text.contains("entry that does not exist: entry=" + folder + "/lib/*"), text);
    text = run(2, "-cp", folder + "/*", MAIN);
    assertTrue(
        text.contains("there is no jar where the class path has some: entry=" + folder), text);
    text = run(2, "-cp", classes.toString(), "RunCommandTest");
    assertTrue(text.contains("no such class: class=RunCommandTest, class path=" + classes), text);
    text = run(2, "-jar", folder.resolve("no.jar").toString());
    assertTrue(text.contains("there is no such jar: -jar " + folder), text);
    text = run(2, "-jar", jar("a.jar", null, "a/A.class").toString());
    assertTrue(text.contains("the jar names no main class: -jar " + folder), text);
    Files.writeString(folder.resolve("b.jar"), "no jar");
    text = run(2, "-jar", folder.resolve("b.jar").toString());
    assertTrue(text.contains("a jar cannot be read: class path=" + folder), text);
    String jar = jar("c.jar", "a.A", "a/A.class").toString();
    run(0, "--dry-run", "-jar", jar, "--steps=2");
    assertTrue(out.strip().endsWith(" -jar " + jar + " --steps=2"), out);
    run(0, "--dry-run", "-cp", folder + "/*:" + classes, MAIN);
  }

  @ParameterizedTest
  @CsvSource({
    "'-np', '0', '-np takes 1 or more ranks: -np 0'",
    "'--restarts', '-1', '--restarts takes 0 or more: --restarts -1'",
    "'--wait', '5', '--wait is for --min-np: give both, or none'",
    "'--hosts', 'a:b', '--hosts takes host names'",
    "'--hosts', 'a:0,b', '--hosts takes host names'",
    "'--hosts', 'a,-oProxyCommand=x:2', '--hosts takes host names'",
    "'--hosts', 'a', 'the hosts are for fewer ranks: -np 2, --hosts a;'",
    "'--hostfile', '/no/file', 'there is no such file: --hostfile /no/file'",
    "'-x', '=foo', '-x takes an environment variable, NAME or NAME=VALUE: -x ''=foo'''",
    "'-x', '', '-x takes an environment variable, NAME or NAME=VALUE: -x '''''",
    "'-x', 'A B=c', '-x takes an environment variable, NAME or NAME=VALUE: -x ''A B=c'''",
    "'-D', '', '-D takes a system property, NAME or NAME=VALUE: -D '''''",
    "'--jvm-option', '', '--jvm-option takes an option of java'",
    "'--prefix', '--jobs', 'Unknown option: ''--jobs'''"
  })
  void badOptionsAreExplained(String option, String value, String text) throws IOException {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    List<String> words = new ArrayList<>(List.of(option, value, "-cp", classes.toString(), MAIN));
    String said = option.equals("-np") ? command(2, words) : run(2, words.toArray(String[]::new));
    assertTrue(said.contains("run: ") && said.contains(text), said);
  }

  /** As after a build of this module alone. */
  @Test
  void toolsThatAreNotThereAreNamed() throws IOException {
    launcher("bin/mpirun", FakeLaunchers.OPEN_MPI_4);
    for (String tool : List.of("doctor", "perf")) {
      String text = run(2, tool, "--local=2");
      assertTrue(text.endsWith(": the tools have not been built: run mvn package first\n"), text);
    }
  }

  @Test
  void optionsThatExcludeOneAnother() {
    says(2, "--threads starts one JVM on this machine", "--threads", "--hosts=a:2");
    says(2, "the hosts are given twice", "--hosts=a:2", "--hostfile=" + classes);
    assertTrue(run(2, MAIN).contains("the class path is missing"));
    assertTrue(run(2, "-jar", "-cp", "a", "b").contains("-jar has a class path of its own"));
  }

  private void dry(int code, String... options) {
    List<String> words = new ArrayList<>(List.of(options));
    words.addAll(List.of("--dry-run", "-cp", classes.toString(), MAIN));
    run(code, words.toArray(String[]::new));
  }

  private void says(int code, String text, String... options) {
    List<String> words = new ArrayList<>(List.of(options));
    words.addAll(List.of("-cp", classes.toString(), MAIN));
    String said = run(code, words.toArray(String[]::new));
    assertTrue(said.contains(text), said);
  }

  private String run(int code, String... words) {
    List<String> all = new ArrayList<>(List.of("-np", "2"));
    all.addAll(List.of(words));
    return command(code, all);
  }

  /** Returns what it says in one line, or nothing. */
  private String command(int code, List<String> words) {
    StringWriter printed = new StringWriter();
    StringWriter said = new StringWriter();
    CommandLine command =
        GradientSyncCommand.commandLine(new RunCommand(environment))
            .setOut(new PrintWriter(printed, true))
            .setErr(new PrintWriter(said, true));
    int result = command.execute(words.toArray(String[]::new));
    out = printed.toString();
    assertEquals(code, result, said::toString);
    assertEquals(code == 0 ? 0 : 1, said.toString().lines().count(), said::toString);
    return said.toString();
  }

  private Path launcher(String name, String version) throws IOException {
    return launcher(name, version, 0);
  }

  private Path launcher(String name, String version, int code) throws IOException {
    return FakeLaunchers.make(folder.resolve(name), version, code);
  }

  private Path jar(String name, String mainClass, String... entries) throws IOException {
    Manifest manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    if (mainClass != null) {
      manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, mainClass);
    }
    Path file = folder.resolve(name);
    try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(file), manifest)) {
      for (String entry : entries) {
        jar.putNextEntry(new ZipEntry(entry));
      }
    }
    return file;
  }
}
