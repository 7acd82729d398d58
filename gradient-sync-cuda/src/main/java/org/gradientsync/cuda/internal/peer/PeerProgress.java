package org.gradientsync.cuda.internal.peer;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.internal.matching.NodeMemory;
import org.gradientsync.internal.ranks.ShortText;

/**
 * How far each rank has come, for the others' hosts to read: the kernels only know of each other
 * what they have to. It lies in the pages of {@link PeerUnmapFlags}, each of which one rank writes.
 *
 * <p>A rank makes two kinds of calls: those that meet on the host, and those that only enqueue a
 * kernel. Each kind has its own order among the ranks; between the two kinds nobody waits. So it
 * says, when it enqueues, how many calls of either kind it has made, and when it waits on the host
 * for a call, the same: a rank that has enqueued more kernels than another had when it came to a
 * host call, and has not come to that call itself, cannot be in the same program.
 */
final class PeerProgress {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  /** How many calls back a finding is kept, as in protocol.cuh. */
  static final int FINDINGS = 4;

  // Words of a rank's page; PeerUnmapFlags has the first.
  private static final int ENQUEUED = 8;
  private static final int MET_WHEN_ENQUEUED = 16;
  private static final int ENQUEUED_WHEN_WAITING = 24;
  private static final int WAITING_FOR_CALL = 32;
  private static final int FOUND = 40; // what the GPU writes, as Found in protocol.cuh
  private static final int FOUND_IN = FOUND + FINDINGS * Long.BYTES;
  private static final int DONE = FOUND_IN + FINDINGS * Long.BYTES;
  private static final int FOUND_BYTES = DONE + Long.BYTES - FOUND;
  private static final int TEXT = FOUND + FOUND_BYTES;
  private static final int TEXT_BYTES = 256;

  /** What of a page this takes, the word of those included. */
  static final int BYTES = TEXT + TEXT_BYTES;

  private final NodeMemory memory;
  private final int rank;
  private final int ranks;

  PeerProgress(NodeMemory memory, int rank, int ranks) {
    this.memory = memory;
    this.rank = rank;
    this.ranks = ranks;
  }

  /**
   * This rank enqueues. Allocates nothing.
   *
   * @param number how many kernels with this one, or a negative number if nobody counts any more
   * @param met how many calls have met on the host before
   */
  void enqueued(long number, long met) {
    ByteBuffer own = memory.of(rank);
    WORD.setOpaque(own, MET_WHEN_ENQUEUED, met);
    WORD.setRelease(own, ENQUEUED, number);
  }

  /** This rank waits on the host for a call. */
  void waits(long enqueued, long call, String text) {
    ByteBuffer own = memory.of(rank);
    say("waits on the host in " + text);
    WORD.setOpaque(own, ENQUEUED_WHEN_WAITING, enqueued);
    WORD.setRelease(own, WAITING_FOR_CALL, call);
  }

  /** What this rank does, as others are to read it. */
  void say(String text) {
    ShortText.put(memory.of(rank), TEXT, TEXT_BYTES, text);
  }

  /** What a rank has said last, or how far it has come. */
  String textOf(int peer) {
    String text = ShortText.get(memory.of(peer), TEXT, TEXT_BYTES);
    return (text.isEmpty() ? "" : text + ", ") + "enqueued=" + enqueuedBy(peer);
  }

  long enqueuedBy(int peer) {
    return (long) WORD.getAcquire(memory.of(peer), ENQUEUED);
  }

  /**
   * Whether a rank that waits on the host can never meet another, because that one has enqueued
   * what it should have come after.
   */
  boolean isMismatch() {
    for (int waiting = 0; waiting < ranks; waiting++) {
      long call = (long) WORD.getAcquire(memory.of(waiting), WAITING_FOR_CALL);
      long before = (long) WORD.getOpaque(memory.of(waiting), ENQUEUED_WHEN_WAITING);
      for (int peer = 0; call > 0 && before >= 0 && peer < ranks; peer++) {
        long enqueued = enqueuedBy(peer);
        long met = (long) WORD.getOpaque(memory.of(peer), MET_WHEN_ENQUEUED);
        if (enqueued > before && met < call) {
          return true;
        }
      }
    }
    return false;
  }

  /** Where this rank's GPU says what it has found. */
  ByteBuffer found() {
    return memory.of(rank).slice(FOUND, FOUND_BYTES).order(ByteOrder.nativeOrder());
  }

  /**
   * In which of its calls, as the GPUs count them, a rank's GPU made a finding; 0 if there is none.
   * Allocates nothing.
   *
   * @param place from 0 to {@link #FINDINGS} - 1
   */
  long foundIn(int peer, int place) {
    return (long) WORD.getAcquire(memory.of(peer), FOUND_IN + place * Long.BYTES);
  }

  /** What it found in that call or, if it has found something since, in a later one. */
  long foundBy(int peer, int place) {
    return (long) WORD.getAcquire(memory.of(peer), FOUND + place * Long.BYTES);
  }

  /** The last call that this rank's GPU has ended, if its kernels say so. Allocates nothing. */
  long done() {
    return (long) WORD.getAcquire(memory.of(rank), DONE);
  }
}
