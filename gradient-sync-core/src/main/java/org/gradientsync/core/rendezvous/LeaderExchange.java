package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * How the first ranks of all nodes, the leaders, gather the calls of all ranks. Each leader passes
 * on what it has, so its calls double in each step: on M nodes, a leader sends ceil(log2 M)
 * messages. (J. Bruck et al.: Efficient Algorithms for All-to-All Communications in Multiport
 * Message-Passing Systems. IEEE TPDS 8(11), 1997.)
 *
 * <p>A message has the calls of several nodes, and what travels with each call, if that is equally
 * long for all. If it is not, the calls do not match, and what travels with them is dropped.
 */
final class LeaderExchange implements AutoCloseable {
  private final GatheredCalls calls;
  private final int[] own; // the ranks of this node
  private final Step[] steps;
  private int slot;
  private int done; // steps
  private boolean sent; // the message of the current step
  private int payload; // the size that all entries have which this leader knows, or 0

  /** What a leader sends and receives in one round. */
  private static final class Step implements AutoCloseable {
    private static final int HEADER = LeaderRounds.bytes(0, 0);

    private final GroupTransport group;
    private final int destination;
    private final int source;
    private final int[] given; // ranks whose calls are sent
    private final int[] taken; // ranks whose calls are received
    private final ByteBuffer out;
    private final ByteBuffer in;
    private final Message receive;
    private final Message[] sends; // by size; each made at first use
    private Message send; // the last that was started

    Step(GroupTransport group, NodeLayout layout, LeaderRounds rounds, int round, int most) {
      this.group = group;
      int blocks = rounds.blocks(round);
      int from = rounds.source(round);
      destination = layout.ranksOf(rounds.destination(round)).get(0);
      source = layout.ranksOf(from).get(0);
      given = ranksOf(layout, layout.node(), blocks);
      taken = ranksOf(layout, from, blocks);
      out = HostBuffers.allocate(LeaderRounds.bytes(given.length, most));
      in = HostBuffers.allocate(LeaderRounds.bytes(taken.length, most));
      receive = group.receiver(in, source, Channel.GATHERED_CALLS);
      sends = new Message[Integer.SIZE];
    }

    private static int[] ranksOf(NodeLayout layout, int first, int blocks) {
      int[] ranks = new int[layout.ranks()];
      int count = 0;
      for (int node = first; node < first + blocks; node++) {
        for (int rank : layout.ranksOf(node % layout.nodes())) {
          ranks[count++] = rank;
        }
      }
      return Arrays.copyOf(ranks, count);
    }

    void send(GatheredCalls calls, int slot, int payload) {
      int bytes = CallRecord.BYTES + payload;
      out.putLong(0, payload);
      for (int i = 0; i < given.length; i++) {
        out.put(HEADER + i * bytes, calls.entry(given[i], slot), 0, bytes);
      }
      int size = Integer.SIZE - Integer.numberOfLeadingZeros(payload);
      if (sends[size] == null) {
        ByteBuffer part =
            out.slice(0, LeaderRounds.bytes(given.length, payload)).order(out.order());
        sends[size] = group.sender(part, destination, Channel.GATHERED_CALLS);
      }
      send = sends[size];
      send.start();
    }

    /** Writes what has arrived, and returns the payload of each entry. */
    int take(GatheredCalls calls, int slot) {
      int payload = (int) in.getLong(0);
      int bytes = CallRecord.BYTES + payload;
      for (int i = 0; i < taken.length; i++) {
        calls.entry(taken[i], slot).put(0, in, HEADER + i * bytes, bytes);
      }
      return payload;
    }

    @Override
    public void close() {
      Resources.closeAll(receive, () -> Resources.closeAll(sends));
    }
  }

  LeaderExchange(GroupTransport group, NodeLayout layout, GatheredCalls calls) {
    this.calls = calls;
    own = layout.ranksOf(layout.node()).stream().mapToInt(Integer::intValue).toArray();
    LeaderRounds rounds = new LeaderRounds(layout.nodes(), layout.node());
    steps = new Step[rounds.count()];
    for (int round = 0; round < steps.length; round++) {
      steps[round] = new Step(group, layout, rounds, round, calls.payloadBytes());
    }
    done = steps.length;
  }

  /** Expects the messages of a call. */
  void begin(int newSlot) {
    slot = newSlot;
    done = 0;
    sent = false;
    for (Step step : steps) {
      step.receive.start();
    }
  }

  /**
   * Sends and receives what can be. Called after all ranks of this node have written their entries.
   *
   * @return whether all entries are there
   */
  boolean advance() {
    while (done < steps.length) {
      Step step = steps[done];
      if (!sent) {
        payload = done == 0 ? ownPayload() : payload;
        step.send(calls, slot, payload);
        sent = true;
      }
      if (!step.receive.test()) {
        return false;
      }
      payload = step.take(calls, slot) == payload ? payload : 0;
      done++;
      sent = false;
    }
    return true;
  }

  private int ownPayload() {
    int first = GatheredCalls.sentBytes(CallRecord.inlineBytes(calls.entry(own[0], slot)));
    for (int rank : own) {
      if (GatheredCalls.sentBytes(CallRecord.inlineBytes(calls.entry(rank, slot))) != first) {
        return 0;
      }
    }
    return first;
  }

  /** Whether this leader needs nothing more from another one in the current call. */
  boolean isDoneWith(int peer) {
    boolean finished = true;
    for (int i = 0; i < steps.length; i++) {
      finished &= steps[i].source != peer || i < done;
      boolean started = i < done || i == done && sent;
      finished &= steps[i].destination != peer || started && steps[i].send.test();
    }
    return finished;
  }

  @Override
  public void close() {
    Resources.closeAll(steps);
  }
}
