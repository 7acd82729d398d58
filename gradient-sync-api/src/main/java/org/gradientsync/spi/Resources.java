package org.gradientsync.spi;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * What has been taken so far, so that all of it is given back: by a constructor that fails half
 * way, and by a close in which one thing fails and the others must not be left.
 *
 * <pre>{@code
 * try {
 *   stream = resources.add(device.createStream());
 *   event = resources.add(device.createEvent(false));
 * } catch (RuntimeException | Error e) {
 *   resources.closeAfter(e);
 *   throw e;
 * }
 * }</pre>
 */
public final class Resources implements AutoCloseable {
  private final List<AutoCloseable> taken = new ArrayList<>();

  /** Nothing yet. */
  public Resources() {}

  /**
   * Notes what has been taken.
   *
   * @param resource closed before those that were added earlier
   * @return the resource
   * @param <T> its type
   */
  public <T extends AutoCloseable> T add(T resource) {
    taken.add(resource);
    return resource;
  }

  /** Closes all, the last one first. A second call does nothing. */
  @Override
  public void close() {
    closeAll(takeAll());
  }

  /**
   * Closes all, the last one first, after something has failed.
   *
   * @param failure what the caller throws; what goes wrong here is suppressed in it
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
   * Closes one after the other, all of them whatever some of them throw.
   *
   * @param resources in this order; null for what is not there
   * @throws RuntimeException what the first one that failed has thrown; what others throw is
   *     suppressed in it
   */
  public static void closeAll(AutoCloseable... resources) {
    closeAll(Arrays.asList(resources));
  }

  /**
   * Closes one after the other, as {@link #closeAll(AutoCloseable...)} does.
   *
   * @param resources in this order; null for what is not there
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
   * Closes one after the other, all of them, after something has failed.
   *
   * @param failure what the caller throws; what goes wrong here is suppressed in it
   * @param resources in this order; null for what is not there
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
