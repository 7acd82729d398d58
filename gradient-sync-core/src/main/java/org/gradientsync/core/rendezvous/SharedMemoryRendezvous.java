package org.gradientsync.core.rendezvous;

import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Counter;
import org.gradientsync.spi.Message;

/**
 * A rendezvous in memory that all ranks of a group see. Each rank writes to its own rows and reads
 * the others', so a rendezvous costs a few loads and stores.
 *
 * <p>Each counter of a rank is in a cache line of its own, and only grows. One more word says which
 * rank it waits for in the middle of a call. A rank alternates between two slots for what it asks
 * for. It reaches call k + 2 only after all others have reached k + 1, and so have read its slot of
 * call k. The same holds for a small payload that travels with the call.
 */
public final class SharedMemoryRendezvous implements Rendezvous {
  static final int ARRIVED = 0; // the counter of the call that a rank has reached
  public static final int REDUCED = 1; // the counter of the call whose shard a rank has reduced
  public static final int DONE = 2; // the counter of the call that a rank has finished
  private static final int ABANDONED = 3; // the counter of the call in which a rank has given up
  private static final int CHUNKS = 4; // the counter of the chunks that a rank has published
  private static final int WAITS_FOR = 5;
  private static final int COUNTERS = 6;
  private static final int LINE = Counter.LINE;
  private static final int CALLS = COUNTERS * LINE;
  private static final int CALL_LINES = (CallRecord.BYTES + LINE - 1) / LINE * LINE;
  private static final int PAYLOADS = CALLS + SLOTS * CALL_LINES;

  // The maximum. Above this size, a second wait costs little, and copying costs more.
  public static final int PAYLOAD_BYTES = 4096;
  public static final int BYTES = PAYLOADS + SLOTS * PAYLOAD_BYTES;

  private final int rank;
  private final NodeMemory node;
  private final Runnable alive;
  private final ByteBuffer[][] calls;
  private final Counter[][] counters;
  private Payload next; // travels with the next call, or null
  private long current;

  /**
   * @param memory {@link #BYTES} zeros of each rank
   * @param alive throws if a rank has failed, where that is known at once; called while others are
   *     awaited
   */
  public SharedMemoryRendezvous(NodeMemory memory, int rank, int size, Runnable alive) {
    this.rank = rank;
    node = memory;
    this.alive = alive;
    calls = new ByteBuffer[size][SLOTS];
    counters = new Counter[size][COUNTERS];
    for (int peer = 0; peer < size; peer++) {
      for (int i = 0; i < SLOTS; i++) {
        ByteBuffer call = memory.of(peer).slice(CALLS + i * CALL_LINES, CallRecord.BYTES);
        calls[peer][i] = call.order(ByteOrder.nativeOrder());
      }
      for (int counter = 0; counter < COUNTERS; counter++) {
        counters[peer][counter] = new Counter(memory.of(peer), counter * LINE, alive);
      }
    }
  }

  @Override
  public void arrive(long sequence, ByteBuffer record) {
    current = sequence;
    try {
      alive.run();
    } catch (RankLostException e) {
      return; // this rank does not take part: awaitAll throws
    }
    CallRecord.copy(record, call(rank));
    if (next != null) {
      next.write(slot());
      next = null;
    }
    set(ARRIVED);
  }

  public void carry(Payload payload) {
    next = payload;
  }

  public int slot() {
    return Rendezvous.slot(current);
  }

  /** The memory for what travels with a rank's call, valid as {@link #call}. */
  public ByteBuffer payload(int peer, int slot) {
    return node.of(peer).slice(PAYLOADS + slot * PAYLOAD_BYTES, PAYLOAD_BYTES);
  }

  /** Sets a counter to the current call. A rank that sees it sees all earlier writes, too. */
  public void set(int counter) {
    counters[rank][counter].set(current);
  }

  /** Publishes the number of all chunks of results that lie in this rank's buffer. */
  public void publish(long chunks) {
    counters[rank][CHUNKS].set(chunks);
  }

  /** Tells the others which rank this one waits for in the middle of a call; negative for none. */
  public void waitFor(int peer) {
    counters[rank][WAITS_FOR].set(peer + 1L);
  }

  /** The rank that a rank waits for, or a negative number. */
  public int waitsFor(int peer) {
    return (int) counters[peer][WAITS_FOR].get() - 1;
  }

  public long published(int peer) {
    return counters[peer][CHUNKS].get();
  }

  /** Finishes when a rank's counter has reached the current call. */
  public Message expect(int peer, int counter) {
    return counters[peer][counter].expect(current);
  }

  @Override
  public void awaitAll(MatchingGroup group) {
    for (int peer = 0; peer < counters.length; peer++) {
      if (peer != rank) {
        awaitArrival(peer, group, peer);
      }
    }
    for (int peer = 0; peer < counters.length; peer++) {
      if (peer != rank) {
        awaitArrival(rank, group, peer); // throws if this rank does not take part
        if (gaveUp(peer)) { // before this rank came
          throw group.lost(peer, null);
        }
      }
    }
  }

  /** Usually the rank has come, and nothing but a load is needed. */
  private void awaitArrival(int of, MatchingGroup group, int peer) {
    if (counters[of][ARRIVED].get() < current) {
      group.await(arrival(of), peer, WaitPhase.RENDEZVOUS, current);
    }
  }

  @Override
  public Message arrival(int peer) {
    return expect(peer, ARRIVED);
  }

  @Override
  public ByteBuffer call(int peer) {
    return calls[peer][slot()];
  }

  @Override
  public void abandon(boolean inCall) {
    node.keep();
    counters[rank][ABANDONED].set(inCall ? Math.max(1, current) : current + 1);
    VarHandle.fullFence(); // before this rank's program writes to its buffers again
  }

  @Override
  public boolean abandoned(int peer) {
    VarHandle.acquireFence();
    return counters[peer][ABANDONED].get() > 0;
  }

  /**
   * Whether a rank has given up in the current call or before. Not if it gave up in a later one: it
   * began that after this rank had done its part of this.
   */
  public boolean gaveUp(int peer) {
    return abandoned(peer) && counters[peer][ABANDONED].get() <= current;
  }
}
