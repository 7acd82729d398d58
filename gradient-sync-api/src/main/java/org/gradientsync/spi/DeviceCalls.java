package org.gradientsync.spi;

/**
 * The record of calls that a device runs without a rendezvous of the hosts. Callers hold the
 * group's monitor, except for methods that any thread may call.
 */
public interface DeviceCalls {
  /**
   * Records and counts a call, just before the caller enqueues it. If that fails, the caller breaks
   * the group: see {@link RankGroup#failed}.
   *
   * @param call a collective; the caller may change it after this method returns
   */
  void enqueues(CollectiveCall call);

  /**
   * {@return how errors and reports show a call, for example {@code allReduce(FLOAT32[1000] "w1",
   * AVERAGE)}} Any thread may call it.
   *
   * @param call a call
   */
  String describe(CollectiveCall call);

  /**
   * Records that the device runs the call for which this rank has met others, for example a
   * message; just before or after the caller enqueues it. {@link #count} leaves it out.
   */
  void enqueuedMessage();

  /**
   * {@return the number of the last call, for {@link #done}, if it was recorded here and is not
   * known to be done; otherwise 0}
   */
  long pending();

  /**
   * Records that the device has completed calls. Any thread may call it.
   *
   * @param call the number of the last completed call, from {@link #pending}
   */
  void done(long call);

  /**
   * Stops counting, because a graph launched through the driver makes calls that are not counted.
   */
  void stopCounting();

  /**
   * {@return the number of calls from {@link #enqueues}, 0 or more, or a negative number after
   * {@link #stopCounting}}
   */
  long count();

  /**
   * {@return the number of calls that began with a rendezvous of the hosts, also the library's own}
   */
  long met();

  /**
   * {@return a description of the current or last call of this rank for errors, for example {@code
   * allReduce(FLOAT32[1000], AVERAGE), call=7}} Any thread may call it.
   */
  String current();
}
