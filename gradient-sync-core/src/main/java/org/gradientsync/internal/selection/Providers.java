package org.gradientsync.internal.selection;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import org.gradientsync.GradientSync;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The providers on the class path, and the modules of those that are missing. */
public final class Providers {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final Set<Class<?>> WARNED = ConcurrentHashMap.newKeySet(); // in this process
  private static final String HERE = "gradient-sync-core";
  private static final Map<String, String> DEVICES =
      Map.of("host", HERE, "cuda", "gradient-sync-cuda");
  private static final Map<String, String> REDUCERS =
      Map.of(
          "local", HERE,
          "shared", HERE,
          "two-level", HERE,
          "mpi", "gradient-sync-mpi",
          "cuda-aware", "gradient-sync-mpi",
          "host-staged", "gradient-sync-cuda",
          "nccl", "gradient-sync-cuda",
          "two-level-gpu", "gradient-sync-cuda",
          "peer", "gradient-sync-cuda");

  private Providers() {}

  /**
   * Loads the providers of a service, the highest priority first.
   *
   * @param own a provider of this module, whose absence shows that service files were lost
   */
  static <P> List<P> of(Class<P> service, Class<? extends P> own, ToIntFunction<P> priority) {
    List<P> providers = new ArrayList<>();
    ServiceLoader.load(service).forEach(providers::add);
    if (providers.stream().noneMatch(own::isInstance) && WARNED.add(service)) {
      log.warn(
          "META-INF/services/{} does not name what {} has: jars were merged into one, and their files"
              + " there were not; some reducers and devices are missing",
          service.getName(),
          HERE);
    }
    providers.sort(Comparator.comparingInt(priority).reversed());
    return providers;
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
