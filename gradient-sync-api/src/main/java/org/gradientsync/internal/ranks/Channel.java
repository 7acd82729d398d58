package org.gradientsync.internal.ranks;

/**
 * What a group's messages are for: the lower bits of their tags. A channel has at most one message
 * under way between two ranks in each direction, or several that arrive in the order in which they
 * are sent.
 */
public final class Channel {
  /** What the ranks ask for, when they meet for a call. */
  public static final int CALLS = 0;

  /** That a rank has left or has given up. */
  static final int DEPARTURE = 1;

  /** For the data of collectives. */
  public static final int DATA = 2;

  /** For the first half of an all-reduce. */
  public static final int SCATTER = 3;

  /** For the second half of an all-reduce. */
  public static final int GATHER = 4;

  /** Requests for reports. */
  public static final int REPORT_REQUEST = 5;

  /** Reports. */
  public static final int REPORT = 6;

  /** Of the world: the probes of the deadlock detector. */
  public static final int PROBE = 7;

  /** Calls that bring elements. */
  public static final int PAYLOAD = 8;

  private static final int USER = 16;

  /** How many bits of a tag are the channel's. */
  static final int BITS = 13;

  private Channel() {}

  /** For data that is sent with a user's tag. */
  public static int sending(int userTag) {
    return USER + 2 * userTag;
  }

  /** For what its receiver sends back. */
  public static int receiving(int userTag) {
    return sending(userTag) + 1;
  }
}
