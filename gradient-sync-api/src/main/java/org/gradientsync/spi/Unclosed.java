package org.gradientsync.spi;

import java.lang.ref.Cleaner;
import java.util.HashSet;
import java.util.Set;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Warns in the log of a resource that is garbage but was never closed: once for each text, and at
 * most {@value #MAX} times in a process. Resources that are never collected, and those at the end
 * of the process, are not noticed. Thread-safe.
 */
public final class Unclosed {
  private static final int MAX = 10;
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final Cleaner CLEANER = Cleaner.create();
  private static final Set<String> warned = new HashSet<>(); // guarded by itself
  private static int limit = MAX; // guarded by warned; tests change it

  private final Watch watch;
  private final Cleaner.Cleanable cleanable;

  /** What remains when the resource is collected: it must not refer to it. */
  private static final class Watch implements Runnable {
    private volatile String what;
    private volatile boolean closed;

    @Override
    public void run() {
      if (closed) {
        return;
      }
      boolean warns;
      synchronized (warned) {
        warns = warned.size() < limit && warned.add(what);
      }
      if (warns) {
        log.warn("never closed: {}; close it, for example with try (...)", what);
      } else {
        log.debug("never closed: {}", what);
      }
    }
  }

  private Unclosed(Object resource, String what) {
    watch = new Watch();
    watch.what = what;
    cleanable = CLEANER.register(resource, watch);
  }

  /**
   * {@return a new watch of a resource, on which the resource calls {@link #closed}}
   *
   * @param resource the resource, which may refer to the result
   * @param what the resource in the warning
   */
  public static Unclosed watch(Object resource, String what) {
    return new Unclosed(resource, what);
  }

  /**
   * Turns the warning off for a buffer that the library keeps to itself. Its owner closes it, and
   * if nobody closes the owner, the warning is of the owner.
   *
   * @param <B> the type of the buffer
   * @param buffer a buffer that was just allocated
   * @return the buffer
   */
  public static <B extends DeviceBuffer> B exempt(B buffer) {
    ((AbstractDeviceBuffer) buffer).warnNever();
    return buffer;
  }

  /**
   * Changes the text of the warning.
   *
   * @param what the resource in the warning
   */
  public void rename(String what) {
    watch.what = what;
  }

  /** Ends the watch, because the resource has been closed. A second call does nothing. */
  public void closed() {
    watch.closed = true;
    cleanable.clean();
  }

  /** For tests: forgets what has been logged, and allows that many warnings from now on. */
  static void allowWarnings(int count) {
    synchronized (warned) {
      warned.clear();
      limit = count;
    }
  }
}
