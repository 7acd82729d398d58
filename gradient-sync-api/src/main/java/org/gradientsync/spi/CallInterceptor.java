package org.gradientsync.spi;

import java.util.function.Function;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;

/**
 * Intercepts a program's calls of its sync before they run, for tests that inject faults. It does
 * not see the library's own calls, which create a sync, register buckets or compare their layouts.
 *
 * <p>Every method may block or throw. Several threads may call them concurrently.
 */
public interface CallInterceptor {
  /**
   * Called before each call on device buffers, before {@code register}, and before the average of
   * each bucket. Runs on the thread that makes the call, after all earlier calls have ended, and
   * with no lock held.
   *
   * @param call the program's call; of several broadcasts the first
   * @param ranks the number of ranks of the sync
   * @return the call to make: this one, another one on this device, or null to skip it
   */
  CollectiveCall beforeCall(CollectiveCall call, int ranks);

  /** Called before {@code copyFrom} and {@code copyTo} of any buffer of the sync's device. */
  void beforeCopy();

  /**
   * Wraps the communicator that the sync returns to the program. The sync's {@code barrier} uses
   * the wrapped communicator, too.
   *
   * @param communicator the sync's own communicator
   * @param turn waits until the averages of all buckets that precede a call have ended; run it
   *     before counting a call
   * @return the communicator for the program
   */
  Communicator around(Communicator communicator, Runnable turn);

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
