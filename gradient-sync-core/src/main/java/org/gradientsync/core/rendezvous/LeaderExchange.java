package org.gradientsync.core.rendezvous;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * How the first ranks of all nodes, the leaders, gather the calls of all ranks. Each leader passes
 * on what it has, so its calls double in each of floor(log2 M) {@link LeaderRounds} on M nodes.
 *
 * <p>As long as all calls that a leader has are the same, its messages have one of them. With it
 * travel the contributions of all ranks, if they are equally long, or of the only rank that
 * contributes, or sums over nodes ({@link SumRounds}). Otherwise a message has the calls of several
 * nodes, and the contributions if they are equally long; sums are dropped. All leaders find out,
 * because in the end each has all calls.
 */
final class LeaderExchange implements AutoCloseable {
  private static final int HEADER = LeaderRounds.bytes(0, 0);
  private static final int PARTS = HEADER + CallRecord.BYTES; // that travel with one call
  private static final int PAYLOAD = 0; // the size of each contribution
  private static final int FORM = 4;
  private static final int DIFFERENT = 0; // calls, each with its contribution
  private static final int SAME = 1; // one call for all, and the contributions
  private static final int SUMMED = 2; // one call for all, and sums
  private static final int OF_ONE = 3; // one call for all, and one or no contribution
  private static final int FORMS = 4;
  private static final int ALL = -1; // peers

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
    private final int[] destinations; // of the same message
    private final int[] given; // ranks whose calls are sent
    private final ByteBuffer out;
    private final Message[][] sends; // by form and size, then by destination; made at first use
    private final Inbox[] inboxes;
    private Message[] started; // the last that were

    Step(NodeLayout layout, LeaderRounds rounds, int round) {
      this.round = round;
      destinations = leaders(layout, rounds.destinations(round));
      given = destinations.length == 0 ? new int[0] : ranksOf(layout, rounds, round);
      out = allocate(given.length);
      sends = new Message[FORMS * GatheredCalls.SIZES][];
      int[] sources = rounds.sources(round);
      inboxes = new Inbox[sources.length];
      for (int i = 0; i < sources.length; i++) {
        int[] taken = ranksOf(layout, rounds.of(sources[i]), round);
        inboxes[i] = new Inbox(this, i, layout.ranksOf(sources[i]).get(0), taken);
      }
    }

    private static int[] leaders(NodeLayout layout, int[] nodes) {
      return Arrays.stream(nodes).map(node -> layout.ranksOf(node).get(0)).toArray();
    }

    private static int[] ranksOf(NodeLayout layout, LeaderRounds rounds, int round) {
      int first = rounds.first(round);
      return IntStream.range(first, first + rounds.blocks(round))
          .flatMap(node -> layout.ranksOf(node).stream().mapToInt(rank -> rank))
          .toArray();
    }

    void send() {
      if (destinations.length == 0) {
        return;
      }
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
        sums.give(round, out, PARTS, size);
        send(SUMMED, size, LeaderRounds.messageBytes(1, size));
        return;
      }
      int parts = 0;
      for (int i = 0; i < given.length && payload > 0; i++) {
        if (CallRecord.contributes(out, HEADER, given[i])) {
          int at = PARTS + parts++ * payload;
          out.put(at, calls.entry(given[i], slot), CallRecord.BYTES, payload);
        }
      }
      int form = parts == given.length ? SAME : OF_ONE;
      send(form, parts == 0 ? 0 : payload, LeaderRounds.messageBytes(parts, payload));
    }

    private void send(int form, int size, int bytes) {
      out.putInt(PAYLOAD, payload);
      out.putInt(FORM, form);
      int index = form * GatheredCalls.SIZES + GatheredCalls.sizeIndex(size);
      if (sends[index] == null) {
        ByteBuffer part = out.slice(0, bytes).order(out.order());
        sends[index] = new Message[destinations.length];
        Arrays.setAll(sends[index], i -> group.sender(part, destinations[i], Channel.CALLS));
      }
      started = sends[index];
      for (Message message : started) {
        message.start();
      }
    }

    /** Whether one of the peers, or each if it is ALL, has what is sent to it. */
    boolean isSent(int peer) {
      boolean all = true;
      for (int i = 0; i < destinations.length; i++) {
        all &= peer != ALL && destinations[i] != peer || started[i].test();
      }
      return all;
    }

    boolean hasCome() {
      boolean all = true;
      for (Inbox inbox : inboxes) {
        all &= inbox.receive.test(); // each, as one may have failed
      }
      return all;
    }

    @Override
    public void close() {
      Stream<Message> made = Arrays.stream(sends).filter(Objects::nonNull).flatMap(Arrays::stream);
      Resources.closeAll(
          () -> Resources.closeAll(made.toArray(Message[]::new)),
          () -> Resources.closeAll(inboxes));
    }
  }

  /** What comes from one source in a round. */
  private final class Inbox implements AutoCloseable {
    private final Step step;
    private final int index;
    private final int source;
    private final int[] taken; // ranks whose calls are received
    private final ByteBuffer in;
    private final Message receive;

    Inbox(Step step, int index, int source, int[] taken) {
      this.step = step;
      this.index = index;
      this.source = source;
      this.taken = taken;
      in = allocate(taken.length);
      receive = group.receiver(in, source, Channel.CALLS);
    }

    void take() {
      int form = in.getInt(FORM);
      int theirs = in.getInt(PAYLOAD);
      ByteBuffer call = calls.entry(rank, slot);
      if (same && form != DIFFERENT && CallRecord.equal(in, HEADER, call, CallRecord.BYTES)) {
        if (sums != null) {
          sums.take(step.round, index, in, PARTS, GatheredCalls.sentBytes(sums.bytes()));
        } else {
          takeContributions(payload);
        }
        return;
      }
      if (same) {
        same = false;
        sums = null;
        for (int before = 0; before < step.round; before++) {
          for (Inbox inbox : steps[before].inboxes) {
            inbox.spread(call, 0);
          }
        }
        for (int before = 0; before < index; before++) {
          step.inboxes[before].spread(call, 0);
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
      int at = PARTS;
      for (int i = 0; i < taken.length && size > 0; i++) {
        if (CallRecord.contributes(in, HEADER, taken[i])) {
          calls.entry(taken[i], slot).put(CallRecord.BYTES, in, at, size);
          at += size;
        }
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
      receive.close();
    }
  }

  LeaderExchange(GroupTransport group, NodeLayout layout, GatheredCalls calls) {
    this.group = group;
    this.calls = calls;
    rank = group.rank();
    own = layout.ranksOf(layout.node()).stream().mapToInt(peer -> peer).toArray();
    LeaderRounds rounds = new LeaderRounds(layout.nodes(), layout.node());
    steps = new Step[rounds.count()];
    for (int round = 0; round < steps.length; round++) {
      steps[round] = new Step(layout, rounds, round);
    }
    done = steps.length;
  }

  private ByteBuffer allocate(int ranks) {
    int different = LeaderRounds.bytes(ranks, calls.payloadBytes());
    int sum = calls.nodeSize() == 0 ? 0 : GatheredCalls.MAX_SUM;
    return HostBuffers.allocate(Math.max(different, LeaderRounds.messageBytes(1, sum)));
  }

  /** Expects the messages of a call, with which sums may travel. */
  void begin(int newSlot, LeaderSums newSums) {
    slot = newSlot;
    sums = newSums;
    done = 0;
    sent = false;
    for (Step step : steps) {
      for (Inbox inbox : step.inboxes) {
        inbox.receive.start();
      }
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
      if (!step.hasCome()) {
        return;
      }
      for (Inbox inbox : step.inboxes) {
        inbox.take();
      }
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
    for (int peer : own) {
      ByteBuffer call = calls.entry(peer, slot);
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
      boolean started = i < done || i == done && sent;
      for (Inbox inbox : steps[i].inboxes) {
        finished &= inbox.source != peer || i < done;
      }
      for (int destination : steps[i].destinations) {
        finished &= destination != peer || started && steps[i].isSent(peer);
      }
    }
    return finished;
  }

  /** The same for all others. */
  boolean isDone() {
    boolean all = done == steps.length;
    for (int i = 0; i < steps.length && all; i++) {
      all = steps[i].isSent(ALL);
    }
    return all;
  }

  @Override
  public void close() {
    Resources.closeAll(steps);
  }
}
