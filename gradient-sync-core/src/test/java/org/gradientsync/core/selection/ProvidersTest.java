package org.gradientsync.core.selection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.gradientsync.GradientSync;
import org.gradientsync.Logged;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests which class loaders providers are looked for with. */
class ProvidersTest {
  /** A provider that only one class loader's service file names. */
  public static class Elsewhere implements Launcher {
    @Override
    public String name() {
      return "elsewhere";
    }

    @Override
    public boolean launched() {
      return false;
    }

    @Override
    public Set<String> settings() {
      return Set.of("elsewhere.port");
    }

    @Override
    public Transport connect(Settings settings) {
      throw new UnsupportedOperationException();
    }
  }

  /** Another one. */
  public static final class Elsewhere2 extends Elsewhere {
    @Override
    public String name() {
      return "elsewhere2";
    }
  }

  private static void withContext(ClassLoader loader, Runnable work) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(loader);
    try {
      work.run();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @Test
  void aContextClassLoaderThatSeesNothingOfTheLibrary() {
    for (ClassLoader loader : new ClassLoader[] {ClassLoader.getPlatformClassLoader(), null}) {
      withContext(
          loader,
          () -> {
            List<String> lines =
                Logged.lines(
                    () -> {
                      LocalRanks.run(2, sync -> sync.average(new float[1]));
                      GradientSync.create().close();
                    });
            assertEquals(
                List.of(), lines.stream().filter(line -> line.contains(" WARN ")).toList());
          });
    }
  }

  @Test
  void aContextClassLoaderThatSeesMore(@TempDir Path folder) throws Exception {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(Launcher.class.getName()), Elsewhere.class.getName());
    URL[] more = {folder.toUri().toURL()};
    List<ReducerProvider> own = Providers.of(ReducerProvider.class);
    try (URLClassLoader plugin = new URLClassLoader(more, getClass().getClassLoader())) {
      withContext(
          plugin,
          () -> {
            assertEquals(
                List.of("elsewhere"),
                Providers.of(Launcher.class).stream().map(Launcher::name).toList());
            assertEquals(own.size(), Providers.of(ReducerProvider.class).size()); // each once
          });
    }
    assertEquals(List.of(), Providers.of(Launcher.class));
  }

  /** A launcher alone, with the reducers of the core. */
  @Test
  void settingsOfLaunchersAreKnown(@TempDir Path folder) throws Exception {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(Launcher.class.getName()), Elsewhere.class.getName());
    URL[] more = {folder.toUri().toURL()};
    Settings settings = new Settings(Map.of("elsewhere.port", "1", "elsewhere.part", "1"));
    try (URLClassLoader plugin = new URLClassLoader(more, getClass().getClassLoader())) {
      withContext(
          plugin,
          () -> {
            List<String> lines = Logged.lines(() -> UnknownSettings.warn(settings, 0));
            assertEquals(1, lines.size(), lines::toString);
            assertTrue(lines.get(0).contains("gradientsync.elsewhere.part=1"), lines::toString);
          });
    }
  }

  /** Class paths may differ, and all ranks must take the same of several alike. */
  @Test
  void providersOfOnePriorityHaveOneOrder(@TempDir Path folder) throws Exception {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(
        services.resolve(Launcher.class.getName()),
        Elsewhere2.class.getName() + "\n" + Elsewhere.class.getName());
    URL[] more = {folder.toUri().toURL()};
    try (URLClassLoader plugin = new URLClassLoader(more, getClass().getClassLoader())) {
      withContext(
          plugin,
          () ->
              assertEquals(
                  List.of("elsewhere", "elsewhere2"),
                  Providers.of(Launcher.class, launcher -> 100).stream()
                      .map(Launcher::name)
                      .toList()));
    }
  }

  @Test
  void aContextClassLoaderWithACopyOfTheLibrary() throws Exception {
    URL[] copy = {Providers.class.getProtectionDomain().getCodeSource().getLocation()};
    try (URLClassLoader other = new URLClassLoader(copy, ClassLoader.getPlatformClassLoader())) {
      withContext(other, () -> assertTrue(Providers.of(ReducerProvider.class).size() > 1));
    }
  }
}
