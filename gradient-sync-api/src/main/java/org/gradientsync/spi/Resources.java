package org.gradientsync.spi;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * A list of acquired resources. It closes all of them if a constructor fails half way, and it
 * closes the rest if closing one of them fails.
 *
 * <pre>{@code
 * try {
 *   stream = resources.add(device.createStream(false));
 *   event = resources.add(device.createEvent(false));
 * } catch (RuntimeException | Error e) {
 *   resources.closeAfter(e);
 *   throw e;
 * }
 * }</pre>
 */
public final class Resources implements AutoCloseable {
  private final List<AutoCloseable> taken = new ArrayList<>();

  /** Creates an empty list. */
  public Resources() {}

  /**
   * Adds a resource.
   *
   * @param resource the resource, which is closed before those that were added earlier
   * @return the resource
   * @param <T> the type of the resource
   */
  public <T extends AutoCloseable> T add(T resource) {
    taken.add(resource);
    return resource;
  }

  /** Closes all resources, the last one first. A second call does nothing. */
  @Override
  public void close() {
    closeAll(takeAll());
  }

  /**
   * Closes all resources after a failure, the last one first.
   *
   * @param failure the exception that the caller throws; exceptions from closing are added to it as
   *     suppressed ones
   */
  public void closeAfter(Throwable failure) {
    closeAllAfter(failure, takeAll());
  }

  private AutoCloseable[] takeAll() {
    List<AutoCloseable> all = new ArrayList<>(taken);
    taken.clear();
    Collections.reverse(all);
    return all.toArray(AutoCloseable[]::new);
  }

  /**
   * Closes resources in the given order, all of them even if some throw.
   *
   * @param resources the resources, of which some may be null
   * @throws RuntimeException the first exception; later ones are added to it as suppressed ones
   */
  public static void closeAll(AutoCloseable... resources) {
    closeAll(Arrays.asList(resources));
  }

  /**
   * Closes resources in the given order, as {@link #closeAll(AutoCloseable...)} does.
   *
   * @param resources the resources, of which some may be null
   */
  public static void closeAll(Iterable<? extends AutoCloseable> resources) {
    Throwable first = null;
    for (AutoCloseable resource : resources) {
      first = closed(resource, first);
    }
    if (first instanceof Error e) {
      throw e;
    } else if (first instanceof RuntimeException e) {
      throw e;
    } else if (first != null) {
      throw new IllegalStateException("closing failed: " + first, first);
    }
  }

  /**
   * Closes resources in the given order after a failure, all of them even if some throw.
   *
   * @param failure the exception that the caller throws; exceptions from closing are added to it as
   *     suppressed ones
   * @param resources the resources, of which some may be null
   */
  public static void closeAllAfter(Throwable failure, AutoCloseable... resources) {
    for (AutoCloseable resource : resources) {
      closed(resource, failure);
    }
  }

  private static Throwable closed(AutoCloseable resource, Throwable before) {
    try {
      if (resource != null) {
        resource.close();
      }
    } catch (Exception | Error e) {
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      if (before == null) {
        return e;
      } else if (before != e) {
        before.addSuppressed(e);
      }
    }
    return before;
  }
}
