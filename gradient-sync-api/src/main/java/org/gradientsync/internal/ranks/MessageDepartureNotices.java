package org.gradientsync.internal.ranks;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/** Word by messages, for which each rank listens to each other one from the beginning. */
public final class MessageDepartureNotices implements DepartureNotices {
  private static final int KIND = Long.BYTES; // behind the generation
  private static final int DEPARTURE = KIND + Integer.BYTES;
  private static final int REASON = KIND + Long.BYTES;
  private static final int BYTES = REASON + REASON_BYTES;
  private static final long NOBODY = -1; // instead of a generation
  private static final int LEAVES = 0;
  private static final int GAVE_UP = 1; // and will leave

  private final GroupTransport group;
  private final long generation;
  private final ByteBuffer[] words;
  private final ByteBuffer[] own = new ByteBuffer[2]; // by kind; later there may be no memory
  private final Message[] receives;
  private final String[] gaveUp; // each null until the rank has said so
  private boolean closed;

  /**
   * Listens from now on.
   *
   * @param generation tells this group from earlier owners of its tags
   */
  MessageDepartureNotices(GroupTransport group, long generation) {
    this.group = group;
    this.generation = generation;
    words = new ByteBuffer[group.size()];
    receives = new Message[group.size()];
    gaveUp = new String[group.size()];
    own[LEAVES] = HostBuffers.allocate(BYTES);
    own[GAVE_UP] = HostBuffers.allocate(BYTES);
    ByteBuffer memory = HostBuffers.allocate(words.length * BYTES);
    for (int peer = 0; peer < words.length; peer++) {
      if (peer != group.rank()) {
        words[peer] = memory.slice(peer * BYTES, BYTES).order(memory.order());
        words[peer].putLong(0, NOBODY);
        receives[peer] = group.receiver(words[peer], peer, Channel.DEPARTURE);
        receives[peer].start();
      }
    }
  }

  @Override
  public synchronized boolean has(int peer) {
    while (!closed && receives[peer].test()) {
      if (words[peer].getLong(0) == generation) { // otherwise from an earlier owner of these tags
        if (words[peer].getInt(KIND) == LEAVES) {
          return true;
        }
        gaveUp[peer] = reasonIn(peer);
      }
      receives[peer].start();
    }
    return false;
  }

  @Override
  public synchronized boolean hasAny(int peer) {
    return has(peer) || gaveUp[peer] != null;
  }

  @Override
  public synchronized String whyGivenUp(int peer) {
    if (peer != group.rank()) {
      has(peer);
    }
    return gaveUp[peer] == null ? "" : gaveUp[peer];
  }

  @Override
  public synchronized String reason(int peer) {
    if (peer == group.rank() || !has(peer)) {
      return "";
    }
    return reasonIn(peer);
  }

  @Override
  public synchronized Departure departure(int peer) {
    return Departure.of(words[peer].getInt(DEPARTURE));
  }

  private String reasonIn(int peer) {
    return ShortText.get(words[peer], REASON, REASON_BYTES);
  }

  @Override
  public void say(Departure departure, String reason, IntPredicate deaf) {
    say(LEAVES, departure, reason, deaf);
  }

  @Override
  public void sayGivenUp(String reason, IntPredicate deaf) {
    say(GAVE_UP, Departure.CLOSED, reason, deaf);
  }

  private void say(int kind, Departure departure, String reason, IntPredicate deaf) {
    ByteBuffer word = own[kind];
    word.putLong(0, generation);
    word.putInt(KIND, kind);
    word.putInt(DEPARTURE, departure.ordinal());
    ShortText.put(word, REASON, REASON_BYTES, reason);
    GradientSyncException failure = null;
    for (int peer = 0; peer < words.length; peer++) {
      try {
        if (peer != group.rank() && !deaf.test(peer)) {
          Message message = group.sender(word, peer, Channel.DEPARTURE);
          message.start();
          message.close();
        }
      } catch (GradientSyncException e) {
        failure = failure == null ? e : failure; // and the others are told all the same
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
