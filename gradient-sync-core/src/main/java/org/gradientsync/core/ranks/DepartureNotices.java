package org.gradientsync.core.ranks;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.ShortText;

/**
 * Notices that ranks of a group send when they leave it, or when a call has failed and they make no
 * further calls. A rank keeps one receive posted for the notices of all. Any thread may call this;
 * it takes no group's lock.
 *
 * <p>Notices go to {@linkplain RankMap#neighbours neighbours}. In a large group each rank passes
 * the first ones that it receives on, so all ranks learn of them; {@link #otherGone} stands for the
 * rest.
 */
public final class DepartureNotices implements AutoCloseable {
  private static final int REASON_BYTES = 496; // longer ones are truncated
  private static final int REASON = 32; // its place, after the other fields
  private static final int BYTES = REASON + REASON_BYTES;
  private static final int LEFT = 0;
  private static final int FAILED = 1; // leaves later
  private static final int MAX_PASSED_ON = 4; // then the group is broken on all ranks anyway

  private final GroupTransport group;
  private final JobLiveness job;
  private final int[] neighbours;
  private final boolean passesOn;
  // One for each kind, allocated early: later there may be no memory left.
  private final ByteBuffer[] own = {HostBuffers.allocate(BYTES), HostBuffers.allocate(BYTES)};
  private final Mailbox mailbox;
  private final Notice[][] notices; // by kind and rank; each null until it comes
  private int passedOn;

  private record Notice(Departure departure, boolean isByItself, long call, String reason) {}

  public DepartureNotices(GroupTransport group, JobLiveness job) {
    this.group = group;
    this.job = job;
    neighbours = group.ranks().neighbours();
    passesOn = !group.ranks().areAllNeighbours();
    notices = new Notice[own.length][group.size()];
    mailbox = new Mailbox(group, Channel.DEPARTURE, BYTES);
    mailbox.open();
  }

  /** Receives what has arrived, and passes on what others may not know. */
  private void read() {
    for (ByteBuffer next = mailbox.next(); next != null; next = mailbox.next()) {
      ByteBuffer in = next.duplicate().order(next.order());
      boolean valid = in.getLong() == group.key().id(); // not of an earlier owner
      int about = in.getInt();
      if (valid && accept(in, about) && passesOn && passedOn++ < MAX_PASSED_ON) {
        ByteBuffer copy = HostBuffers.allocate(BYTES).put(0, next, 0, BYTES);
        try {
          send(copy, peer -> peer == about || isGone(peer));
        } catch (GradientSyncException e) {
          // other ranks pass it on, too
        }
      }
    }
  }

  /** Returns false if it was known, or is invalid. */
  private boolean accept(ByteBuffer in, int peer) {
    Notice[] known = notices[in.getInt() == FAILED ? FAILED : LEFT];
    if (peer < 0 || peer >= known.length || known[peer] != null) {
      return false;
    }
    Departure departure = Departure.of(in.getInt());
    boolean byItself = in.getInt() != 0;
    String reason = ShortText.get(in, REASON, REASON_BYTES);
    known[peer] = new Notice(departure, byItself, in.getLong(), reason);
    return true;
  }

  private boolean isGone(int peer) {
    return notices[LEFT][peer] != null || !job.isAlive(group.ranks().worldRank(peer));
  }

  public synchronized boolean hasLeft(int peer) {
    read();
    return notices[LEFT][peer] != null;
  }

  /** Whether a rank is known to have finished a call because it has left after it. */
  public synchronized boolean hasFinished(int peer, long call) {
    Notice left = notices[LEFT][peer];
    return left != null
        && left.departure == Departure.CLOSED
        && left.reason.isEmpty()
        && left.call >= call
        && notices[FAILED][peer] == null;
  }

  public synchronized boolean hasLeftOrFailed(int peer) {
    return hasLeft(peer) || notices[FAILED][peer] != null;
  }

  /**
   * A rank that ends this rank's wait for another one, or {@link RankMap#NO_RANK}: it has failed,
   * or it has left and is needed. If the wait is not for a rendezvous, in which ranks pass on what
   * others ask for, only those end it whose own notices may not come this far.
   */
  public synchronized int otherGone(boolean meets, IntPredicate needed) {
    read();
    for (int peer = 0; (meets || passesOn) && peer < group.size(); peer++) {
      boolean left = notices[LEFT][peer] != null;
      if (notices[FAILED][peer] != null || left && meets && needed.test(peer)) {
        return peer;
      }
    }
    return RankMap.NO_RANK;
  }

  /** Why a call of a rank failed, or an empty text if the rank has sent no failure notice. */
  public synchronized String whyGivenUp(int peer) {
    read();
    return notices[FAILED][peer] == null ? "" : notices[FAILED][peer].reason;
  }

  /** Whether a rank's call failed by itself, not for want of another rank. */
  public synchronized boolean hasFailedByItself(int peer) {
    read();
    return notices[FAILED][peer] != null && notices[FAILED][peer].isByItself;
  }

  /** Why a rank left, or an empty text if it has not left or gave no reason. */
  public synchronized String reason(int peer) {
    return hasLeft(peer) ? notices[LEFT][peer].reason : "";
  }

  /** How a rank left; only after {@link #hasLeft}. */
  public synchronized Departure departure(int peer) {
    return notices[LEFT][peer].departure;
  }

  /** Tells the others that this rank leaves. Sending to unreachable ones can end the process. */
  public void send(Departure departure, String reason, long call, IntPredicate unreachable) {
    send(write(LEFT, departure, false, call, reason), unreachable);
  }

  /** Notifies the others that a call has failed, by itself or for want of another rank. */
  public void sendFailure(String reason, boolean byItself, IntPredicate unreachable) {
    send(write(FAILED, Departure.CLOSED, byItself, 0, reason), unreachable);
  }

  private ByteBuffer write(
      int kind, Departure departure, boolean byItself, long call, String reason) {
    ByteBuffer out = own[kind];
    out.putLong(group.key().id()).putInt(group.rank()).putInt(kind);
    out.putInt(departure.ordinal()).putInt(byItself ? 1 : 0).putLong(call);
    ShortText.put(out, REASON, REASON_BYTES, reason);
    return out.clear();
  }

  private void send(ByteBuffer memory, IntPredicate unreachable) {
    GradientSyncException failure = null;
    for (int peer : neighbours) {
      try {
        if (!unreachable.test(peer)) {
          mailbox.send(memory, peer);
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
    mailbox.close();
  }
}
