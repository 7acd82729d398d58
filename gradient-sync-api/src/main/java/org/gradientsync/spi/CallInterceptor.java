package org.gradientsync.spi;

import java.util.function.Function;
import org.gradientsync.GradientSync;

/**
 * Intercepts a program's calls of its sync before they run, for tests that inject faults. It does
 * not see the library's own calls, which create a sync, register buckets or compare their layouts.
 *
 * <p>Every method may block or throw. Several threads may call them concurrently.
 */
public interface CallInterceptor {
  /**
   * Called before each call on device buffers, before {@code register}, before the average of each
   * bucket, and before each collective of the sync's communicator and of those split from it. Runs
   * on the thread that makes the call, after all earlier calls have ended, and with no lock held.
   *
   * @param call the program's call; of several broadcasts the first. A communicator's call is a
   *     {@link HostCall}; its reductions are calls on copies in host memory
   * @param ranks the number of ranks of the sync or the communicator
   * @return the call to make: this one, another one on the same device, or null to skip it
   */
  CollectiveCall beforeCall(CollectiveCall call, int ranks);

  /** Called before {@code copyFrom} and {@code copyTo} of any buffer of the sync's device. */
  void beforeCopy();

  /** Implemented by the builders that {@link GradientSync#builder} returns. */
  interface Installer {
    /**
     * Installs an interceptor of the sync's calls and its buffers' copies.
     *
     * @param interceptor called with the new sync; returns its interceptor
     * @return this builder
     */
    GradientSync.Builder interceptor(Function<GradientSync, CallInterceptor> interceptor);
  }
}
