package org.gradientsync;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The devices and reducers that the class path has, and those that it lacks. */
final class Providers {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final AtomicBoolean TOLD = new AtomicBoolean(); // in this process
  private static final String HERE = "gradient-sync-api";
  private static final Map<String, String> MODULES =
      Map.of(
          "host", HERE,
          "local", HERE,
          "shared", HERE,
          "mpi", "gradient-sync-mpi",
          "cuda-aware", "gradient-sync-mpi",
          "cuda", "gradient-sync-cuda",
          "host-staged", "gradient-sync-cuda",
          "peer", "gradient-sync-cuda");

  private Providers() {}

  /**
   * Those of a service, the highest priority first.
   *
   * @param own one that this module has
   */
  static <P> List<P> of(Class<P> service, Class<? extends P> own, ToIntFunction<P> priority) {
    List<P> providers = new ArrayList<>();
    ServiceLoader.load(service).forEach(providers::add);
    if (providers.stream().noneMatch(own::isInstance) && TOLD.compareAndSet(false, true)) {
      log.warn(
          "META-INF/services/{} does not name what {} has: jars were merged into one, and their files"
              + " there were not; some reducers and devices are missing",
          service.getName(),
          HERE);
    }
    providers.sort(Comparator.comparingInt(priority).reversed());
    return providers;
  }

  /** Where a reducer or device is that the class path has not, for the end of an error text. */
  static String whereIs(String name) {
    String module = MODULES.get(name.toLowerCase(Locale.ROOT));
    if (module == null) {
      return "";
    }
    return module.equals(HERE)
        ? "; it is in " + module + ": META-INF/services has been overwritten by another jar's"
        : "; it is in " + module + ", which is not on the class path";
  }
}
