package org.gradientsync.core.diagnosis;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import org.gradientsync.GradientSyncException;
import org.gradientsync.core.host.HostBuffers;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.core.ranks.Liveness;
import org.gradientsync.core.ranks.RankMap;
import org.gradientsync.core.ranks.ShortText;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Requests for reports to ranks of other nodes, and the answers. {@link Reports} uses them where
 * nodes share no folder.
 *
 * <p>Each rank keeps a small receive posted for the requests of all. A request holds the generation
 * of the group, which distinguishes it from earlier owners of its tags. An {@link Answer} has a
 * fixed size; longer texts are truncated. A rank asks another rank at most once, and gets one
 * answer.
 *
 * <p>Any thread may call this; nothing here waits.
 */
public final class RemoteReportRequest implements AutoCloseable {
  private static final int REQUESTER = Long.BYTES; // after the generation
  private static final int REQUEST = 2 * Long.BYTES;
  private static final int TEXTS = Long.BYTES; // their offset in an answer
  private static final int PIECE = 512;
  private static final Logger log = LoggerFactory.getLogger(RemoteReportRequest.class);

  private final GroupTransport group;
  private final RankMap ranks;
  private final Liveness liveness;
  private final long generation;
  private final ByteBuffer request = HostBuffers.allocate(REQUEST);
  private final Message listening;
  private final BitSet asked = new BitSet(); // the ranks that have asked this one
  private final BitSet unanswered = new BitSet(); // those without an answer
  private final List<Message> sends = new ArrayList<>(0);
  private ByteBuffer[] answers; // allocated when this rank asks
  private Message[] answering;
  private boolean deaf; // receiving has failed
  private boolean silent;

  /**
   * The answer of a rank for its node.
   *
   * @param summarizer the rank that writes the summary, as far as that node knows, or {@link
   *     RankMap#NO_RANK}
   * @param folder the reports of that node
   * @param lines about each rank of that node, in rank order
   */
  record Answer(int summarizer, String folder, List<Line> lines) {}

  /**
   * What the ranks of a node know about one of them.
   *
   * @param died whether its process is gone
   * @param text what it is doing
   */
  record Line(boolean died, String text) {}

  /** Posts the receive. */
  public RemoteReportRequest(GroupTransport group, Liveness liveness, long generation) {
    this.group = group;
    this.ranks = group.ranks();
    this.liveness = liveness;
    this.generation = generation;
    listening = group.receiver(request, Transport.ANY_RANK, Channel.REPORT_REQUEST);
    listening.start();
  }

  /** Receives requests. Returns the ranks that have asked and have no answer yet. */
  synchronized List<Integer> unanswered() {
    if (silent) {
      return List.of();
    }
    sends.forEach(RemoteReportRequest::isOver); // drives their progress
    try {
      while (!deaf && listening.test()) {
        read();
        listening.start();
      }
    } catch (GradientSyncException e) {
      deaf = true;
      log.debug("rank {} cannot listen to the others", group.rank(), e);
    }
    return unanswered.isEmpty() ? List.of() : unanswered.stream().boxed().toList();
  }

  private void read() {
    long peer = request.getLong(REQUESTER);
    boolean own = request.getLong(0) == generation; // otherwise from an earlier owner of these tags
    if (own && peer >= 0 && peer < group.size() && !asked.get((int) peer)) {
      asked.set((int) peer);
      unanswered.set((int) peer);
    }
  }

  /** Whether a request of a rank has arrived. */
  synchronized boolean hasAsked(int peer) {
    return asked.get(peer);
  }

  /** Answers a rank, unless it is known to be gone. */
  synchronized void answer(int requester, Answer answer) {
    unanswered.clear(requester);
    if (liveness.isUnreachable(requester)) {
      return;
    }
    ByteBuffer bytes = HostBuffers.allocate(bytesFrom(group.rank()));
    bytes.putInt(0, answer.summarizer());
    ShortText.put(bytes, TEXTS, PIECE, answer.folder());
    int at = TEXTS + PIECE;
    for (Line line : answer.lines()) {
      bytes.putInt(at, line.died() ? 1 : 0);
      ShortText.put(bytes, at + Integer.BYTES, PIECE - Integer.BYTES, line.text());
      at += PIECE;
    }
    send(bytes, requester, Channel.REPORT);
  }

  /**
   * Asks a rank.
   *
   * @param peer a rank of another node that is not known to be gone
   */
  synchronized void ask(int peer) {
    if (answers == null) {
      answers = new ByteBuffer[group.size()];
      answering = new Message[group.size()];
    }
    if (silent || answering[peer] != null) {
      return;
    }
    try {
      answers[peer] = HostBuffers.allocate(bytesFrom(peer));
      answering[peer] = group.receiver(answers[peer], peer, Channel.REPORT);
      answering[peer].start();
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot ask rank {}", group.rank(), peer, e);
      return;
    }
    ByteBuffer question = HostBuffers.allocate(REQUEST);
    question.putLong(0, generation);
    question.putLong(REQUESTER, group.rank());
    send(question, peer, Channel.REPORT_REQUEST);
  }

  /** The answer of a rank, or null if there is none yet. */
  synchronized Answer answerOf(int peer) {
    if (silent || answers == null || answering[peer] == null || !isOver(answering[peer])) {
      return null;
    }
    ByteBuffer bytes = answers[peer];
    List<Line> lines = new ArrayList<>();
    for (int at = TEXTS + PIECE; at < bytes.capacity(); at += PIECE) {
      String text = ShortText.get(bytes, at + Integer.BYTES, PIECE - Integer.BYTES);
      lines.add(new Line(bytes.getInt(at) != 0, text));
    }
    String folder = ShortText.get(bytes, TEXTS, PIECE);
    return folder.isEmpty()
        ? null
        : new Answer(bytes.getInt(0), folder, lines); // empty if the message was lost
  }

  private void send(ByteBuffer memory, int peer, int channel) {
    if (silent) {
      return;
    }
    try {
      Message message = group.sender(memory, peer, channel);
      sends.add(message);
      message.start();
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot send to rank {}", group.rank(), peer, e);
    }
  }

  /** All ranks list the ranks of a node in the same order, so an answer needs no names. */
  private int bytesFrom(int peer) {
    return TEXTS + (1 + ranks.onNode(ranks.nodeOf(peer)).size()) * PIECE;
  }

  private static boolean isOver(Message message) {
    try {
      return message.test();
    } catch (GradientSyncException e) {
      return false; // a lost rank does not answer
    }
  }

  /** Sends and receives nothing from now on, because the transport may close at any time. */
  synchronized void silence() {
    silent = true;
  }

  @Override
  public synchronized void close() {
    silent = true;
    sends.forEach(this::close);
    close(listening);
    if (answering != null) {
      Arrays.stream(answering).forEach(this::close);
    }
  }

  private void close(Message message) {
    try {
      if (message != null) {
        message.close();
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot end a message", group.rank(), e); // its rank may have died
    }
  }
}
