package org.gradientsync.core.ranks;

/**
 * The purpose of a group's message, in the lower bits of its tag. Between two ranks, a channel has
 * at most one pending message in each direction, or several that arrive in the order in which they
 * were sent.
 */
public final class Channel {
  public static final int CALLS = 0; // the calls that the ranks compare at a rendezvous
  static final int DEPARTURE = 1; // departure and failure notices
  public static final int DATA = 2; // the data of collectives
  public static final int SCATTER = 3; // the reduce-scatter half of an all-reduce
  public static final int GATHER = 4; // the all-gather half of an all-reduce
  public static final int PROBE = 5; // the probes of the deadlock detector; in the world group only
  public static final int ARRIVALS = 6; // notices of ranks that have arrived at a late call
  public static final int SURVIVORS = 7; // how the ranks that are left agree to go on

  public static final int MESSAGES = 8; // from the sender of a message: its call, then the data
  public static final int REPLIES = 9; // from the receiver: its call
  public static final int BITS = 4; // the number of tag bits that hold the channel

  private Channel() {}
}
