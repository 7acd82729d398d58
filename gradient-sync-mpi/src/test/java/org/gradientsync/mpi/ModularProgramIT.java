package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.NativeLibrary;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.module.Configuration;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.tools.ToolProvider;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.example.QueueRunner;
import org.gradientsync.test.faults.Faults;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;

/** Tests a program that is a module and only requires org.gradientsync.core. */
@Timeout(300)
class ModularProgramIT {
  private static final Path SOURCES = Path.of("src/test/modular");

  /** The first JDK that can deny native access. */
  private static final int DENIES = 24;

  @TempDir Path classes;

  @BeforeEach
  void compiles() throws Exception {
    ByteArrayOutputStream errors = new ByteArrayOutputStream();
    int code =
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                errors,
                "--module-path",
                modulePath(GradientSync.class, LocalRanks.class, Logger.class),
                "-d",
                classes.toString(),
                SOURCES.resolve("module-info.java").toString(),
                SOURCES.resolve("sample/Main.java").toString());
    assertEquals(0, code, () -> errors.toString(StandardCharsets.UTF_8));
  }

  @Test
  void runsWithThreads() throws Exception {
    List<String> command = java(List.of(), GradientSync.class, LocalRanks.class, Logger.class);
    command.add("3");
    Mpirun.Result result = Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
    assertEquals(0, result.exitCode(), result.output());
    result.expect("rank 0 local 1.0;").expect("rank 2 local 1.0;");
  }

  @Test
  void runsUnderMpirun() throws Exception {
    Mpirun.require();
    List<String> command =
        new ArrayList<>(List.of("mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"));
    command.add("env");
    command.addAll(
        java(
            List.of(
                "-Djava.library.path=" + System.getProperty("java.library.path"),
                "-cp", // its module name would depend on the name of its file
                place(Class.forName("mpi.MPI", false, getClass().getClassLoader())).toString(),
                "--add-modules",
                "org.gradientsync.mpi"),
            GradientSync.class,
            LocalRanks.class,
            Logger.class,
            MpiLauncher.class,
            NativeLibrary.class));
    command.addAll(command.indexOf("--module-path"), access());
    Mpirun.Result result = Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
    assertEquals(0, result.exitCode(), result.output());
    result.expect("rank 0 shared 0.5;").expect("rank 1 shared 0.5;");
  }

  @Test
  @Tag("jdk25")
  void nativeAccessThatIsDeniedIsNamedWithTheModules() throws Exception {
    List<String> command =
        java(
            List.of("--illegal-native-access=deny", "-Dgradientsync.mpi.binding=direct"),
            GradientSync.class,
            LocalRanks.class,
            Logger.class,
            MpiLauncher.class,
            NativeLibrary.class);
    command.set(0, jdk25().toString());
    command.addAll(0, List.of("env", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0"));
    Mpirun.Result result = Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
    result.expect("start java with --enable-native-access=com.sun.jna,org.gradientsync.mpi\n");
  }

  /** As in a container that gives each module a loader of its own. */
  @Test
  void modulesWithALoaderEachFindEachOther() throws Exception {
    Class<?>[] modules = {
      GradientSync.class, LocalRanks.class, Logger.class, MpiLauncher.class, NativeLibrary.class
    };
    Path[] places = new Path[modules.length];
    for (int i = 0; i < modules.length; i++) {
      places[i] = place(modules[i]);
    }
    ModuleLayer boot = ModuleLayer.boot();
    Configuration modular =
        boot.configuration()
            .resolve(ModuleFinder.of(places), ModuleFinder.of(), Set.of("org.gradientsync.mpi"));
    ModuleLayer layer =
        boot.defineModulesWithManyLoaders(modular, ClassLoader.getPlatformClassLoader());
    Class<?> type = layer.findLoader("org.gradientsync").loadClass("org.gradientsync.GradientSync");
    try (AutoCloseable sync = (AutoCloseable) type.getMethod("create").invoke(null)) {
      Map<?, ?> others = (Map<?, ?>) type.getMethod("alternatives").invoke(sync);
      assertTrue(others.containsKey("mpi"), others::toString);
    }
  }

  @Test
  void theTestKitIsAModule() throws Exception {
    ModuleDescriptor kit =
        ModuleFinder.of(place(Faults.class)).findAll().iterator().next().descriptor();
    assertEquals("org.gradientsync.test", kit.name());
    assertFalse(kit.isAutomatic());
    assertEquals(
        Set.of(
            Faults.class.getPackageName(),
            RankRunner.class.getPackageName(),
            QueueRunner.class.getPackageName()),
        kit.packages());
  }

  /** Options that allow native access, and where the JVM can, deny it to all other modules. */
  private static List<String> access() {
    return Runtime.version().feature() < DENIES
        ? List.of()
        : List.of(
            "--illegal-native-access=deny",
            "--enable-native-access=com.sun.jna,org.gradientsync.mpi,ALL-UNNAMED"); // for mpi.jar
  }

  /** The java of JDK 25 or newer: this one's, or one of the system's. */
  static Path jdk25() throws IOException {
    Path own = Path.of(System.getProperty("java.home"), "bin", "java");
    if (Runtime.version().feature() >= DENIES) {
      return own;
    }
    Path all = Path.of("/usr/lib/jvm");
    if (Files.isDirectory(all)) {
      try (DirectoryStream<Path> found = Files.newDirectoryStream(all, "*25*")) {
        for (Path jdk : found) {
          if (Files.isExecutable(jdk.resolve("bin/java"))) {
            return jdk.resolve("bin/java");
          }
        }
      }
    }
    String reason = "SKIPPED: there is no JDK 25 in /usr/lib/jvm";
    System.out.println(reason);
    return Assumptions.abort(reason);
  }

  private List<String> java(List<String> options, Class<?>... modules) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("--module-path", modulePath(modules) + File.pathSeparator + classes));
    command.addAll(List.of("--module", "sample/sample.Main"));
    return command;
  }

  private static String modulePath(Class<?>... modules) throws IOException, URISyntaxException {
    List<String> places = new ArrayList<>();
    for (Class<?> module : modules) {
      places.add(place(module).toString());
    }
    return String.join(File.pathSeparator, places);
  }

  private static Path place(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }
}
