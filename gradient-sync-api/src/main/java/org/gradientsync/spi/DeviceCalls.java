package org.gradientsync.spi;

import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;

/**
 * The record of calls that a device carries out without a rendezvous of the hosts. The caller holds
 * the group's monitor, if nothing else is said.
 */
public interface DeviceCalls {
  /**
   * Records a call that has been enqueued.
   *
   * @param buffer what it is about
   * @param op the reduction, or null for a broadcast
   * @param root the rank that has the data of a broadcast
   */
  void enqueued(DeviceBuffer buffer, ReduceOp op, int root);

  /**
   * The last call, if it was enqueued and may not be done.
   *
   * @return its number, for {@link #done}; otherwise 0
   */
  long pending();

  /**
   * Records that the device has done what was enqueued. For any thread.
   *
   * @param call the last call that is done, as {@link #pending} numbers it
   */
  void done(long call);

  /** Ends the counting, for calls that nobody counts: those in graphs of the driver. */
  void stopCounting();

  /**
   * How many calls were enqueued.
   *
   * @return 0 or more, or a negative number after {@link #stopCounting}
   */
  long count();

  /**
   * For how many calls the ranks have met on the host.
   *
   * @return those of the library included
   */
  long met();

  /**
   * The call that this rank is in, or was in last, as error messages show it. For any thread.
   *
   * @return for example {@code allReduce(FLOAT32[1000], AVERAGE), call=7}
   */
  String current();
}
