package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.stream.IntStream;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * How the first ranks of all nodes, the leaders, gather the calls of all ranks. Each leader passes
 * on what it has, so its calls double in each of ceil(log2 M) {@link LeaderRounds} on M nodes.
 *
 * <p>As long as all calls that a leader has are the same, its messages have one of them. With it
 * travel the contributions of all ranks, if they are equally long, or sums over nodes ({@link
 * SumTree}). Otherwise a message has the calls of several nodes, and the contributions if they are
 * equally long; sums are dropped. All leaders find out, because in the end each has all calls.
 */
final class LeaderExchange implements AutoCloseable {
  private static final int HEADER = LeaderRounds.bytes(0, 0);
  private static final int PARTS = HEADER + CallRecord.BYTES; // that travel with one call
  private static final int PAYLOAD = 0; // the size of each contribution
  private static final int FORM = 4;
  private static final int DIFFERENT = 0; // calls, each with its contribution
  private static final int SAME = 1; // one call for all, and the contributions
  private static final int SUMMED = 2; // one call for all, and sums
  private static final int FORMS = 3;

  private final GroupTransport group;
  private final GatheredCalls calls;
  private final int rank;
  private final int[] own; // the ranks of this node
  private final Step[] steps;
  private int slot;
  private int done; // steps
  private boolean sent; // the message of the current step
  private boolean same; // whether all calls that this leader has are the same
  private int payload; // the size that all contributions have which this leader knows, or 0
  private LeaderSums sums; // null unless they travel with the calls

  /** What a leader sends and receives in one round. */
  private final class Step implements AutoCloseable {
    private final int round;
    private final int destination;
    private final int source;
    private final int[] given; // ranks whose calls are sent
    private final int[] taken; // ranks whose calls are received
    private final ByteBuffer out;
    private final ByteBuffer in;
    private final Message receive;
    private final Message[] sends; // by form and size; each made at first use
    private Message send; // the last that was started

    Step(NodeLayout layout, LeaderRounds rounds, int round, SumTree tree) {
      this.round = round;
      LeaderRounds others = rounds.ofSource(round);
      destination = layout.ranksOf(rounds.destination(round)).get(0);
      source = layout.ranksOf(others.node()).get(0);
      given = ranksOf(layout, rounds.first(round), rounds.blocks(round));
      taken = ranksOf(layout, others.first(round), rounds.blocks(round));
      out = allocate(given.length, tree == null ? 0 : tree.given(round).length);
      in = allocate(taken.length, tree == null ? 0 : tree.taken(round).length);
      receive = group.receiver(in, source, Channel.CALLS);
      sends = new Message[FORMS * Integer.SIZE];
    }

    private ByteBuffer allocate(int ranks, int sums) {
      int different = LeaderRounds.bytes(ranks, calls.payloadBytes());
      int summed = LeaderRounds.messageBytes(sums, GatheredCalls.MAX_SUM);
      return HostBuffers.allocate(Math.max(different, summed));
    }

    private static int[] ranksOf(NodeLayout layout, int first, int blocks) {
      return IntStream.range(first, first + blocks)
          .flatMap(node -> layout.ranksOf(node % layout.nodes()).stream().mapToInt(rank -> rank))
          .toArray();
    }

    void send() {
      if (!same) {
        int bytes = CallRecord.BYTES + payload;
        for (int i = 0; i < given.length; i++) {
          out.put(HEADER + i * bytes, calls.entry(given[i], slot), 0, bytes);
        }
        send(DIFFERENT, payload, LeaderRounds.bytes(given.length, payload));
        return;
      }
      out.put(HEADER, calls.entry(rank, slot), 0, CallRecord.BYTES);
      if (sums != null) {
        int size = GatheredCalls.sentBytes(sums.bytes());
        int count = sums.give(round, out, PARTS, size);
        send(SUMMED, size, LeaderRounds.messageBytes(count, size));
        return;
      }
      for (int i = 0; i < given.length && payload > 0; i++) {
        out.put(PARTS + i * payload, calls.entry(given[i], slot), CallRecord.BYTES, payload);
      }
      send(SAME, payload, LeaderRounds.messageBytes(given.length, payload));
    }

    private void send(int form, int size, int bytes) {
      out.putInt(PAYLOAD, form == SUMMED ? 0 : size);
      out.putInt(FORM, form);
      int index = form * Integer.SIZE + Integer.SIZE - Integer.numberOfLeadingZeros(size);
      if (sends[index] == null) {
        ByteBuffer part = out.slice(0, bytes).order(out.order());
        sends[index] = group.sender(part, destination, Channel.CALLS);
      }
      send = sends[index];
      send.start();
    }

    void take() {
      int form = in.getInt(FORM);
      int theirs = in.getInt(PAYLOAD);
      ByteBuffer call = calls.entry(rank, slot);
      if (same && form != DIFFERENT && CallRecord.equal(in, HEADER, call, CallRecord.BYTES)) {
        if (sums != null) {
          sums.take(round, in, PARTS, GatheredCalls.sentBytes(sums.bytes()));
        } else {
          takeContributions(payload);
        }
        return;
      }
      if (same) {
        same = false;
        sums = null;
        for (int before = 0; before < round; before++) {
          steps[before].spread(call, 0);
        }
      }
      if (form == DIFFERENT) {
        int bytes = CallRecord.BYTES + theirs;
        for (int i = 0; i < taken.length; i++) {
          calls.entry(taken[i], slot).put(0, in, HEADER + i * bytes, bytes);
        }
      } else {
        spread(in, HEADER);
        takeContributions(theirs);
      }
      payload = theirs == payload ? payload : 0;
    }

    /** Writes the contributions that have arrived with one call. */
    private void takeContributions(int size) {
      for (int i = 0; i < taken.length && size > 0; i++) {
        calls.entry(taken[i], slot).put(CallRecord.BYTES, in, PARTS + i * size, size);
      }
    }

    /** Writes a call as that of each rank. */
    private void spread(ByteBuffer call, int at) {
      for (int peer : taken) {
        calls.entry(peer, slot).put(0, call, at, CallRecord.BYTES);
      }
    }

    @Override
    public void close() {
      Resources.closeAll(() -> Resources.closeAll(sends), receive);
    }
  }

  LeaderExchange(GroupTransport group, NodeLayout layout, GatheredCalls calls, SumTree tree) {
    this.group = group;
    this.calls = calls;
    rank = group.rank();
    own = Step.ranksOf(layout, layout.node(), 1);
    LeaderRounds rounds = new LeaderRounds(layout.nodes(), layout.node());
    steps = new Step[rounds.count()];
    for (int round = 0; round < steps.length; round++) {
      steps[round] = new Step(layout, rounds, round, tree);
    }
    done = steps.length;
  }

  /** Expects the messages of a call, with which sums may travel. */
  void begin(int newSlot, LeaderSums newSums) {
    slot = newSlot;
    sums = newSums;
    done = 0;
    sent = false;
    for (Step step : steps) {
      step.receive.start();
    }
  }

  /** Sends and receives what can be, after this node has come. Publishes all calls at last. */
  void advance(long sequence) {
    while (done < steps.length) {
      Step step = steps[done];
      if (!sent) {
        step.send();
        sent = true;
      }
      if (!step.receive.test()) {
        return;
      }
      step.take();
      done++;
      sent = false;
    }
    if (sums != null) {
      sums.finish(slot);
    }
    calls.publish(sequence, same);
  }

  /** Reads what all ranks of this node have written. */
  void open() {
    ByteBuffer first = calls.entry(rank, slot);
    same = true;
    payload = GatheredCalls.sentBytes(CallRecord.inlineBytes(first));
    for (int mate : own) {
      ByteBuffer call = calls.entry(mate, slot);
      same &= CallRecord.equal(call, 0, first, CallRecord.BYTES);
      payload = GatheredCalls.sentBytes(CallRecord.inlineBytes(call)) == payload ? payload : 0;
    }
    if (!same || !CallRecord.isSummed(first)) {
      sums = null;
    } else if (sums != null) {
      sums.begin(slot);
    }
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

  /** The same for all others. */
  boolean isDone() {
    boolean all = done == steps.length;
    for (int i = 0; i < steps.length && all; i++) {
      all = steps[i].send.test();
    }
    return all;
  }

  @Override
  public void close() {
    Resources.closeAll(steps);
  }
}
