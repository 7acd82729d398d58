package org.gradientsync.core.selection;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import org.gradientsync.GradientSync;
import org.gradientsync.core.host.HostDeviceProvider;
import org.gradientsync.core.local.LocalReducerProvider;
import org.gradientsync.spi.DeviceProvider;
import org.gradientsync.spi.Launcher;
import org.gradientsync.spi.ReducerProvider;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The providers on the class path, and the modules of those that are missing. */
public final class Providers {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final Set<String> WARNED = ConcurrentHashMap.newKeySet(); // in this process
  private static final String HERE = "gradient-sync-core";
  private static final String ADVICE =
      "when jars are merged into one, merge their files in META-INF/services, too: Maven's shade"
          + " plugin does with ServicesResourceTransformer, Gradle's shadow plugin with"
          + " mergeServiceFiles()";
  private static final String MPI_LAUNCHER = "org.gradientsync.mpi.MpiLauncher";
  private static final Map<String, String> DEVICES =
      Map.of("host", HERE, "cuda", "gradient-sync-cuda");
  private static final Map<String, String> REDUCERS =
      Map.of(
          "local", HERE,
          "shared", HERE,
          "two-level", HERE,
          "mpi", "gradient-sync-mpi",
          "tcp", "gradient-sync-tcp",
          "cuda-aware", "gradient-sync-mpi",
          "host-staged", "gradient-sync-cuda",
          "nccl", "gradient-sync-cuda",
          "two-level-gpu", HERE,
          "peer", "gradient-sync-cuda");

  /** A provider of each service that a module has: its class and its module. */
  private static final Map<Class<?>, Map<String, String>> OF_MODULES =
      Map.of(
          Launcher.class,
          Map.of(
              MPI_LAUNCHER,
              "gradient-sync-mpi",
              "org.gradientsync.tcp.TcpLauncher",
              "gradient-sync-tcp"),
          DeviceProvider.class,
          Map.of(
              HostDeviceProvider.class.getName(),
              HERE,
              "org.gradientsync.cuda.CudaDeviceProvider",
              "gradient-sync-cuda"),
          ReducerProvider.class,
          Map.of(
              LocalReducerProvider.class.getName(),
              HERE,
              "org.gradientsync.mpi.MpiReducerProvider",
              "gradient-sync-mpi",
              "org.gradientsync.tcp.TcpReducerProvider",
              "gradient-sync-tcp",
              "org.gradientsync.cuda.internal.staged.HostStagedReducerProvider",
              "gradient-sync-cuda"));

  private Providers() {}

  /** Loads the providers of a service, the highest priority first; on all ranks in one order. */
  static <P> List<P> of(Class<P> service, ToIntFunction<P> priority) {
    List<P> providers = of(service);
    providers.sort(
        Comparator.comparingInt(priority)
            .reversed()
            .thenComparing(provider -> provider.getClass().getName()));
    return providers;
  }

  /**
   * Loads the providers of a service: those that the class loader of this library sees, then those
   * of its module layer, then those that only the thread's context class loader sees. The last
   * alone would find nothing on a thread of the common pool in a Spring Boot jar, for example. Logs
   * a warning about each module whose classes are there and whose providers are not.
   */
  public static <P> List<P> of(Class<P> service) {
    Map<String, P> providers = new LinkedHashMap<>(); // by class
    Set<ClassLoader> loaders = loaders(service);
    for (ClassLoader loader : loaders) {
      add(ServiceLoader.load(service, loader), providers);
    }
    ModuleLayer layer = Providers.class.getModule().getLayer();
    if (layer != null) { // whose modules may have a loader each
      add(ServiceLoader.load(layer, service), providers);
    }
    OF_MODULES
        .getOrDefault(service, Map.of())
        .forEach(
            (provider, module) -> {
              if (!providers.containsKey(provider) && isThere(provider, loaders)) {
                warn(module, service);
              }
            });
    return new ArrayList<>(providers.values());
  }

  private static void warn(String module, Class<?> service) {
    if (WARNED.add(module)) {
      log.warn(
          "{} is on the class path, but META-INF/services/{} does not name its classes, so its"
              + " launchers, devices and reducers may be missing; {}",
          module,
          service.getName(),
          ADVICE);
    }
  }

  private static boolean isThere(String name, Set<ClassLoader> loaders) {
    String file = name.replace('.', '/') + ".class";
    return loaders.stream().anyMatch(loader -> loader.getResource(file) != null);
  }

  /** Why there is no launcher of MPI, for an error text, with what to do. */
  static String whyNoMpi() {
    return isThere(MPI_LAUNCHER, loaders(Launcher.class))
        ? "gradient-sync-mpi is on the class path without its file in META-INF/services: each rank"
            + " would average with itself alone; "
            + ADVICE
        : "gradient-sync-mpi is not on the class path: each rank would average with itself alone; add"
            + " the dependency org.gradientsync:gradient-sync-mpi";
  }

  private static <P> void add(ServiceLoader<P> from, Map<String, P> providers) {
    from.stream()
        .forEach(found -> providers.computeIfAbsent(found.type().getName(), key -> found.get()));
  }

  /** The class loaders that may have providers of a service of this library, and not of a copy. */
  private static Set<ClassLoader> loaders(Class<?> service) {
    Set<ClassLoader> loaders = new LinkedHashSet<>();
    loaders.add(Providers.class.getClassLoader());
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    try {
      if (context != null && context.loadClass(service.getName()) == service) {
        loaders.add(context);
      }
    } catch (ClassNotFoundException | LinkageError e) {
      return loaders; // it does not see this library
    }
    return loaders;
  }

  /**
   * Names the module of a device or reducer that was not found, for an error text.
   *
   * @param what {@code device} or {@code reducer}
   * @param name the name in lower case
   */
  static String whereIs(String what, String name) {
    boolean device = what.equals("device");
    String module = (device ? DEVICES : REDUCERS).get(name);
    if (module != null) {
      return "; it is in "
          + module
          + ", which is not on the class path, or whose META-INF/services another jar's has overwritten";
    }
    return (device ? REDUCERS : DEVICES).containsKey(name)
        ? "; that is a " + (device ? "reducer" : "device")
        : "";
  }
}
