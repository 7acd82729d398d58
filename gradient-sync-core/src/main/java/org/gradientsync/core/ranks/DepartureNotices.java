package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Transport;

/**
 * Notices that ranks of a group send when they leave it, or when a call has failed and they make no
 * further calls. A rank keeps one receive posted for the notices of all. Any thread may call this;
 * it takes no group's lock.
 *
 * <p>Notices go to {@link Neighbours}. In a large group each rank passes the first ones that it
 * receives on, so all ranks learn of them; {@link #otherGone} stands for the rest.
 */
public final class DepartureNotices implements AutoCloseable {
  /** The maximum size of a reason. Longer ones are truncated. */
  private static final int REASON_BYTES = 496;

  private static final int GENERATION = 0;
  private static final int RANK = 8; // that the notice is about
  private static final int KIND = 12;
  private static final int DEPARTURE = 16;
  private static final int BY_ITSELF = 20;
  private static final int REASON = 24;
  private static final int BYTES = REASON + REASON_BYTES;
  private static final int LEFT = 0;
  private static final int FAILED = 1; // leaves later
  private static final int MAX_PASSED_ON = 4; // then the group is broken on all ranks anyway

  private final GroupTransport group;
  private final long generation;
  private final IntPredicate dead;
  private final int[] neighbours;
  private final boolean passesOn;
  private final ByteBuffer[] own =
      new ByteBuffer[2]; // by kind; made early, because there may be no memory left later
  private final ByteBuffer notice = HostBuffers.allocate(BYTES);
  private final Message receive;
  private final Departure[] departures; // each null until the rank leaves
  private final String[] reasons; // of those that have left
  private final String[] failures; // each null until the rank sends it
  private final boolean[] byThemselves; // those whose calls failed so
  private int passedOn;
  private boolean closed;

  /**
   * @param generation distinguishes this group from earlier owners of its tags
   * @param dead the ranks that are known to have died
   */
  public DepartureNotices(GroupTransport group, long generation, IntPredicate dead) {
    this.group = group;
    this.generation = generation;
    this.dead = dead;
    int size = group.size();
    neighbours = Neighbours.of(group.rank(), size);
    passesOn = !Neighbours.areAll(size);
    departures = new Departure[size];
    reasons = new String[size];
    failures = new String[size];
    byThemselves = new boolean[size];
    own[LEFT] = HostBuffers.allocate(BYTES);
    own[FAILED] = HostBuffers.allocate(BYTES);
    receive = group.receiver(notice, Transport.ANY_RANK, Channel.DEPARTURE);
    receive.start();
  }

  /** Receives what has arrived, and passes on what others may not know. */
  private void read() {
    while (!closed && receive.test()) {
      int peer = notice.getInt(RANK);
      boolean valid = notice.getLong(GENERATION) == generation; // not of an earlier owner
      boolean isNews = valid && peer >= 0 && peer < departures.length && accept(peer);
      ByteBuffer copy = isNews && passesOn && passedOn < MAX_PASSED_ON ? copy() : null;
      receive.start();
      if (copy != null) {
        passedOn++;
        passOn(copy, peer);
      }
    }
  }

  private void passOn(ByteBuffer copy, int about) {
    try {
      send(copy, peer -> peer == about || isGone(peer));
    } catch (GradientSyncException e) {
      // other ranks pass it on, too
    }
  }

  /** Returns false if it was known. */
  private boolean accept(int peer) {
    String reason = ShortText.get(notice, REASON, REASON_BYTES);
    if (notice.getInt(KIND) == FAILED) {
      boolean isNews = failures[peer] == null;
      failures[peer] = reason;
      byThemselves[peer] = notice.getInt(BY_ITSELF) != 0;
      return isNews;
    }
    boolean isNews = departures[peer] == null;
    departures[peer] = Departure.of(notice.getInt(DEPARTURE));
    reasons[peer] = reason;
    return isNews;
  }

  private ByteBuffer copy() {
    ByteBuffer copy = HostBuffers.allocate(BYTES);
    copy.put(0, notice, 0, BYTES);
    return copy;
  }

  private boolean isGone(int peer) {
    return departures[peer] != null || dead.test(peer);
  }

  /** Whether a rank has left this group. */
  public synchronized boolean hasLeft(int peer) {
    read();
    return departures[peer] != null;
  }

  /** Whether a rank has sent any notice. */
  public synchronized boolean hasLeftOrFailed(int peer) {
    return hasLeft(peer) || failures[peer] != null;
  }

  /**
   * A rank that ends this rank's wait for another one, whose own notices may not come this far: it
   * has failed, or it has left and is needed.
   *
   * @return {@link RankMap#NO_RANK} if there is none, or each rank's notices go to all others
   */
  public synchronized int otherGone(IntPredicate needed) {
    for (int peer = 0; passesOn && peer < departures.length; peer++) {
      if (failures[peer] != null || departures[peer] != null && needed.test(peer)) {
        return peer;
      }
    }
    return RankMap.NO_RANK;
  }

  /** Why a call of a rank failed, or an empty text if the rank has sent no failure notice. */
  public synchronized String whyGivenUp(int peer) {
    read();
    return failures[peer] == null ? "" : failures[peer];
  }

  /** Whether a rank's call failed by itself, not for want of another rank. */
  public synchronized boolean hasFailedByItself(int peer) {
    read();
    return byThemselves[peer];
  }

  /** Why a rank left, or an empty text if it has not left or gave no reason. */
  public synchronized String reason(int peer) {
    return hasLeft(peer) ? reasons[peer] : "";
  }

  /** How a rank left; only after {@link #hasLeft}. */
  public synchronized Departure departure(int peer) {
    return departures[peer];
  }

  /**
   * Notifies the others that this rank leaves. Waits for no rank.
   *
   * @param reason what ended this rank, or an empty text
   * @param unreachable ranks to skip: sending to a rank that is gone can make MPI end this process
   */
  public void send(Departure departure, String reason, IntPredicate unreachable) {
    send(LEFT, departure, false, reason, unreachable);
  }

  /**
   * Notifies the others that a call of this rank has failed. The rank leaves later. See {@link
   * #send}.
   *
   * @param byItself whether it failed by itself, not for want of another rank
   */
  public void sendFailure(String reason, boolean byItself, IntPredicate unreachable) {
    send(FAILED, Departure.CLOSED, byItself, reason, unreachable);
  }

  private void send(
      int kind, Departure departure, boolean byItself, String reason, IntPredicate unreachable) {
    ByteBuffer leaving = own[kind];
    leaving.putLong(GENERATION, generation);
    leaving.putInt(RANK, group.rank());
    leaving.putInt(KIND, kind);
    leaving.putInt(DEPARTURE, departure.ordinal());
    leaving.putInt(BY_ITSELF, byItself ? 1 : 0);
    ShortText.put(leaving, REASON, REASON_BYTES, reason);
    send(leaving, unreachable);
  }

  private void send(ByteBuffer memory, IntPredicate unreachable) {
    GradientSyncException failure = null;
    for (int peer : neighbours) {
      try {
        if (!unreachable.test(peer)) {
          Message message = group.sender(memory, peer, Channel.DEPARTURE);
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
    Resources.closeAll(receive);
  }
}
