package org.gradientsync.spi;

import java.util.function.Function;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;

/**
 * Sees what a program asks of its sync before it is done, for tests that inject faults. The calls
 * that the library makes itself are not shown: those that create a sync, register buckets or
 * compare their layouts.
 *
 * <p>Every method may wait or throw. Several threads may call them at a time.
 */
public interface CallInterceptor {
  /**
   * Called before {@code allReduce}, {@code average}, {@code broadcast} and {@code register}, and
   * before the average of each bucket, by the thread that makes the call, when those before it have
   * ended, and with no lock held.
   *
   * @param buffer what the call is about; the first one if there are several
   * @return the buffer to make the call with: the same or a slice of it, or null to leave the call
   *     out
   */
  DeviceBuffer beforeCall(DeviceBuffer buffer);

  /** Called before {@code copyFrom} and {@code copyTo} of any buffer of the sync's device. */
  void beforeCopy();

  /**
   * Puts something around the communicator that the program gets from its sync. {@code barrier} of
   * the sync goes through it, too.
   *
   * @param communicator the sync's own
   * @param turn waits until the averages of buckets that come before a call have ended; to be run
   *     before a call is counted
   * @return what the program gets
   */
  Communicator around(Communicator communicator, Runnable turn);

  /** Implemented by the builders that {@link GradientSync#builder} returns. */
  interface Installer {
    /**
     * Shows an interceptor the calls that the program makes of the sync, and the copies of its
     * buffers.
     *
     * @param interceptor given the sync when it has been created; returns its interceptor
     * @return the builder
     */
    GradientSync.Builder interceptor(Function<GradientSync, CallInterceptor> interceptor);
  }
}
