package org.gradientsync.internal.ranks;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/** Departure notices by messages. Each rank keeps a receive posted for each other rank. */
final class MessageDepartureNotices implements DepartureNotices {
  private static final int KIND = Long.BYTES; // after the generation
  private static final int DEPARTURE = KIND + Integer.BYTES;
  private static final int REASON = KIND + Long.BYTES;
  private static final int BYTES = REASON + REASON_BYTES;
  private static final long NOBODY = -1; // instead of a generation
  private static final int LEFT = 0;
  private static final int FAILED = 1; // leaves later

  private final GroupTransport group;
  private final long generation;
  private final ByteBuffer[] notices;
  private final ByteBuffer[] own =
      new ByteBuffer[2]; // by kind; made early, because there may be no memory left later
  private final Message[] receives;
  private final String[] failures; // each null until the rank sends it
  private boolean closed;

  /**
   * @param generation distinguishes this group from earlier owners of its tags
   */
  MessageDepartureNotices(GroupTransport group, long generation) {
    this.group = group;
    this.generation = generation;
    notices = new ByteBuffer[group.size()];
    receives = new Message[group.size()];
    failures = new String[group.size()];
    own[LEFT] = HostBuffers.allocate(BYTES);
    own[FAILED] = HostBuffers.allocate(BYTES);
    ByteBuffer memory = HostBuffers.allocate(notices.length * BYTES);
    for (int peer = 0; peer < notices.length; peer++) {
      if (peer != group.rank()) {
        notices[peer] = memory.slice(peer * BYTES, BYTES).order(memory.order());
        notices[peer].putLong(0, NOBODY);
        receives[peer] = group.receiver(notices[peer], peer, Channel.DEPARTURE);
        receives[peer].start();
      }
    }
  }

  @Override
  public synchronized boolean hasLeft(int peer) {
    while (!closed && receives[peer].test()) {
      if (notices[peer].getLong(0) == generation) { // otherwise from an earlier owner of these tags
        if (notices[peer].getInt(KIND) == LEFT) {
          return true;
        }
        failures[peer] = reasonIn(peer);
      }
      receives[peer].start();
    }
    return false;
  }

  @Override
  public synchronized boolean hasLeftOrFailed(int peer) {
    return hasLeft(peer) || failures[peer] != null;
  }

  @Override
  public synchronized String whyGivenUp(int peer) {
    if (peer != group.rank()) {
      hasLeft(peer);
    }
    return failures[peer] == null ? "" : failures[peer];
  }

  @Override
  public synchronized String reason(int peer) {
    if (peer == group.rank() || !hasLeft(peer)) {
      return "";
    }
    return reasonIn(peer);
  }

  @Override
  public synchronized Departure departure(int peer) {
    return Departure.of(notices[peer].getInt(DEPARTURE));
  }

  private String reasonIn(int peer) {
    return ShortText.get(notices[peer], REASON, REASON_BYTES);
  }

  @Override
  public void send(Departure departure, String reason, IntPredicate unreachable) {
    send(LEFT, departure, reason, unreachable);
  }

  @Override
  public void sendFailure(String reason, IntPredicate unreachable) {
    send(FAILED, Departure.CLOSED, reason, unreachable);
  }

  private void send(int kind, Departure departure, String reason, IntPredicate unreachable) {
    ByteBuffer notice = own[kind];
    notice.putLong(0, generation);
    notice.putInt(KIND, kind);
    notice.putInt(DEPARTURE, departure.ordinal());
    ShortText.put(notice, REASON, REASON_BYTES, reason);
    GradientSyncException failure = null;
    for (int peer = 0; peer < notices.length; peer++) {
      try {
        if (peer != group.rank() && !unreachable.test(peer)) {
          Message message = group.sender(notice, peer, Channel.DEPARTURE);
          message.start();
          message.close();
        }
      } catch (GradientSyncException e) {
        failure = failure == null ? e : failure; // still notify the other ranks
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    Resources.closeAll(receives);
  }
}
