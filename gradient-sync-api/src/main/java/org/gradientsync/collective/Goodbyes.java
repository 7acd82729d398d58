package org.gradientsync.collective;

import java.nio.ByteBuffer;
import java.util.function.IntPredicate;
import org.gradientsync.GradientSyncException;
import org.gradientsync.host.HostBuffers;
import org.gradientsync.spi.Message;

/** Word from the other ranks of a group that they leave it, and why. */
final class Goodbyes implements AutoCloseable {
  private static final int REASON = Long.BYTES;
  private static final int BYTES = 512;
  private static final long NOBODY = -1; // instead of a generation

  private final Group group;
  private final int channel;
  private final long generation;
  private final ByteBuffer[] words;
  private final Message[] receives;
  private boolean closed;

  /**
   * Listens from now on.
   *
   * @param generation tells this group from earlier owners of its tags
   */
  Goodbyes(Group group, int channel, long generation) {
    this.group = group;
    this.channel = channel;
    this.generation = generation;
    words = new ByteBuffer[group.size()];
    receives = new Message[group.size()];
    for (int peer = 0; peer < words.length; peer++) {
      if (peer != group.rank()) {
        words[peer] = HostBuffers.allocate(BYTES);
        words[peer].putLong(0, NOBODY);
        receives[peer] = group.receiver(words[peer], peer, channel);
        receives[peer].start();
      }
    }
  }

  /** Whether a rank has said that it has left this very group. */
  synchronized boolean has(int peer) {
    if (closed || !receives[peer].test()) {
      return false;
    }
    if (words[peer].getLong(0) == generation) {
      return true;
    }
    receives[peer].start(); // from an earlier owner of these tags
    return false;
  }

  /** Why a rank has left, or an empty text if it has not, or has not said. */
  synchronized String reason(int peer) {
    if (peer == group.rank() || !has(peer)) {
      return "";
    }
    return ShortText.get(words[peer], REASON, BYTES - REASON);
  }

  /**
   * Tells the others that this rank leaves; waits for nobody. Sending to a rank that is gone can
   * make MPI end this process.
   *
   * @param deaf who need not be told
   */
  void say(String reason, IntPredicate deaf) {
    ByteBuffer word = HostBuffers.allocate(BYTES);
    word.putLong(0, generation);
    ShortText.put(word, REASON, BYTES - REASON, reason);
    GradientSyncException failure = null;
    for (int peer = 0; peer < words.length; peer++) {
      try {
        if (peer != group.rank() && !deaf.test(peer)) {
          Message message = group.sender(word, peer, channel);
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
    for (Message receive : receives) {
      if (receive != null) {
        receive.close();
      }
    }
  }
}
