package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.sun.jna.NativeLibrary;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.tools.ToolProvider;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.faults.Faults;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;

/** Tests a program that is a module and only requires org.gradientsync.core. */
@Timeout(300)
class ModularProgramIT {
  private static final Path SOURCES = Path.of("src/test/modular");

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
    Mpirun.Result result = Mpirun.execute(command, Map.of(), Mpirun.SECONDS);
    assertEquals(0, result.exitCode(), result.output());
    result.expect("rank 0 shared 0.5;").expect("rank 1 shared 0.5;");
  }

  @Test
  void theTestKitIsAModule() throws Exception {
    ModuleDescriptor kit =
        ModuleFinder.of(place(Faults.class)).findAll().iterator().next().descriptor();
    assertEquals("org.gradientsync.test", kit.name());
    assertFalse(kit.isAutomatic());
    assertEquals(
        Set.of(Faults.class.getPackageName(), RankRunner.class.getPackageName()), kit.packages());
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
