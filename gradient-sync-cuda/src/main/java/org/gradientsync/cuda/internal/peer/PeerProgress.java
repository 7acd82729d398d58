package org.gradientsync.cuda.internal.peer;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.core.backend.ShortText;

/**
 * How far each rank has come, for the other ranks' hosts to read; the kernels exchange only what
 * they need. It lies in the pages of {@link PeerUnmapFlags}. Each rank writes only its own page.
 *
 * <p>A rank makes two kinds of calls: those that meet on the host, and those that only enqueue
 * kernels. Ranks match the calls of each kind in order. Calls of one kind do not wait for those of
 * the other. So each rank publishes how many it has made of both, when it enqueues and when it
 * waits on the host. For example, rank 0 has enqueued 10 calls and waits on the host for its 5th
 * meeting. Rank 1 has enqueued 11 calls, but has met only 4 times. So rank 1 made its 11th call
 * before the 5th meeting, and rank 0 did not: the ranks do not run the same program, and would wait
 * for each other until the time-out.
 */
final class PeerProgress {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  /** The number of recent calls whose findings are kept, as in protocol.cuh. */
  static final int FINDINGS = 4;

  // Offsets in a rank's page; the first word belongs to PeerUnmapFlags.
  private static final int ENQUEUED = 8;
  private static final int MET_WHEN_ENQUEUED = 16;
  private static final int ENQUEUED_WHEN_WAITING = 24;
  private static final int WAITING_FOR_CALL = 32;
  private static final int FOUND = 40; // written by the GPU, as Found in protocol.cuh
  private static final int FOUND_IN = FOUND + FINDINGS * Long.BYTES;
  private static final int DONE = FOUND_IN + FINDINGS * Long.BYTES;
  private static final int FOUND_BYTES = DONE + Long.BYTES - FOUND;
  private static final int TEXT = FOUND + FOUND_BYTES;
  private static final int TEXT_BYTES = 256;

  // What the ranks agree on in PeerFinite.
  private static final int BEGUN = TEXT + TEXT_BYTES;
  private static final int CHOSEN_FOR = BEGUN + Long.BYTES;
  private static final int CHOSEN = CHOSEN_FOR + Long.BYTES;

  /** What the buffers are registered under; calls that meet on the host alternate between two. */
  private static final int REGISTERED = CHOSEN + Long.BYTES;

  /** The bytes of a page up to the end of this part, including the first word. */
  static final int BYTES = REGISTERED + 2 * Long.BYTES;

  private final ByteBuffer[] memory;
  private final int rank;
  private final int ranks;

  PeerProgress(ByteBuffer[] memory, int rank, int ranks) {
    this.memory = memory;
    this.rank = rank;
    this.ranks = ranks;
  }

  /**
   * Publishes that this rank enqueues a call. Allocates nothing.
   *
   * @param number the number of calls, including this one; negative if they are no longer counted
   * @param met the number of calls that have met on the host before
   */
  void publishEnqueued(long number, long met) {
    ByteBuffer own = memory[rank];
    WORD.setOpaque(own, MET_WHEN_ENQUEUED, met);
    WORD.setRelease(own, ENQUEUED, number);
  }

  /** Publishes that this rank waits on the host for a call. */
  void waits(long enqueued, long call, String text) {
    ByteBuffer own = memory[rank];
    say("waits on the host in " + text);
    WORD.setOpaque(own, ENQUEUED_WHEN_WAITING, enqueued);
    WORD.setRelease(own, WAITING_FOR_CALL, call);
  }

  /**
   * Publishes, before the ranks meet on the host for a call, what this rank's buffers are
   * registered under. Allocates nothing.
   *
   * @param met the number of calls that have met before
   * @param registration the number of the registration, or 0
   */
  void publishRegistration(long met, int registration) {
    WORD.setRelease(memory[rank], registered(met), (long) registration);
  }

  /**
   * Whether the buffers of all ranks are registered under one number. All ranks get the same answer
   * if they ask after that call has met, and before the next one. Allocates nothing.
   */
  boolean isRegistered(long met) {
    long own = (long) WORD.getAcquire(memory[rank], registered(met));
    for (int peer = 0; peer < ranks; peer++) {
      if (own == 0 || (long) WORD.getAcquire(memory[peer], registered(met)) != own) {
        return false;
      }
    }
    return true;
  }

  private static int registered(long met) {
    return REGISTERED + (int) (met & 1) * Long.BYTES;
  }

  /** Publishes what this rank does, for other ranks' reports. */
  void say(String text) {
    ShortText.put(memory[rank], TEXT, TEXT_BYTES, text);
  }

  /** What a rank has published last, and how far it has come. */
  String textOf(int peer) {
    String text = ShortText.get(memory[peer], TEXT, TEXT_BYTES);
    return (text.isEmpty() ? "" : text + ", ") + "enqueued=" + enqueuedBy(peer);
  }

  long enqueuedBy(int peer) {
    return (long) WORD.getAcquire(memory[peer], ENQUEUED);
  }

  /**
   * Whether a rank waits on the host for a call that another rank has skipped: the other has
   * enqueued later kernels without coming to that call.
   */
  boolean isMismatch() {
    for (int waiting = 0; waiting < ranks; waiting++) {
      long call = (long) WORD.getAcquire(memory[waiting], WAITING_FOR_CALL);
      long before = (long) WORD.getOpaque(memory[waiting], ENQUEUED_WHEN_WAITING);
      for (int peer = 0; call > 0 && before >= 0 && peer < ranks; peer++) {
        long enqueued = enqueuedBy(peer);
        long met = (long) WORD.getOpaque(memory[peer], MET_WHEN_ENQUEUED);
        if (enqueued > before && met < call) {
          return true;
        }
      }
    }
    return false;
  }

  /** The part of the page to which this rank's GPU writes its findings. */
  ByteBuffer found() {
    return memory[rank].slice(FOUND, FOUND_BYTES).order(ByteOrder.nativeOrder());
  }

  /**
   * The call, as the GPUs count them, in which a rank's GPU made a finding; 0 if there is none.
   * Allocates nothing.
   *
   * @param place from 0 to {@link #FINDINGS} - 1
   */
  long foundIn(int peer, int place) {
    return (long) WORD.getAcquire(memory[peer], FOUND_IN + place * Long.BYTES);
  }

  /** The finding of that call, or of a later call that has overwritten it. */
  long foundBy(int peer, int place) {
    return (long) WORD.getAcquire(memory[peer], FOUND + place * Long.BYTES);
  }

  /**
   * The last call that this rank's GPU has completed, if its kernels report it. Allocates nothing.
   */
  long done() {
    return (long) WORD.getAcquire(memory[rank], DONE);
  }

  /**
   * Publishes that this rank begins a call that all ranks make. Whatever another rank announced
   * before it could see this, the caller sees afterwards.
   *
   * @param call the number of such calls, including this one
   */
  void begins(long call) {
    WORD.setOpaque(memory[rank], BEGUN, call);
    VarHandle.fullFence();
  }

  /** The last such call that a rank has begun. */
  long begun(int peer) {
    return (long) WORD.getOpaque(memory[peer], BEGUN);
  }

  /**
   * Announces that this rank is about to {@link #chooses choose} a call. Whoever begins a call
   * without having seen this has published that before the caller reads {@link #begun}.
   *
   * @param found the call, as the GPUs count them, whose finding all ranks are to throw
   */
  void willChoose(long found) {
    ByteBuffer own = memory[rank];
    WORD.setOpaque(own, CHOSEN, 0L);
    WORD.setRelease(own, CHOSEN_FOR, found);
    VarHandle.fullFence();
  }

  /** Publishes the call, as {@link #begins} counts them, in which all ranks throw. */
  void chooses(long call) {
    WORD.setRelease(memory[rank], CHOSEN, call);
  }

  /**
   * The finding for which a rank has chosen a call last, or is choosing one; 0 if there is none.
   */
  long chosenFor(int peer) {
    return (long) WORD.getAcquire(memory[peer], CHOSEN_FOR);
  }

  /** The call that a rank has chosen, or 0 while it is choosing. */
  long chosen(int peer) {
    return (long) WORD.getAcquire(memory[peer], CHOSEN);
  }
}
