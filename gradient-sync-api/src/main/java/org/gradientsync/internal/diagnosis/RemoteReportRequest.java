package org.gradientsync.internal.diagnosis;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.gradientsync.GradientSyncException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.internal.ranks.Channel;
import org.gradientsync.internal.ranks.GroupTransport;
import org.gradientsync.internal.ranks.Liveness;
import org.gradientsync.internal.ranks.RankMap;
import org.gradientsync.internal.ranks.ShortText;
import org.gradientsync.spi.Message;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Questions to ranks of other nodes, what the ranks of their node are doing, and the answers: the
 * way of {@link Reports} where nodes share no folder.
 *
 * <p>Each rank listens, from the beginning and in a few bytes, for the question of each rank of
 * another node. A question is the generation of the group, which tells it from earlier owners of
 * its tags. An {@link Answer} has a fixed length, too, with texts that are cut. A rank asks another
 * once at most, and is answered once.
 *
 * <p>Any thread may call this; nothing here waits.
 */
public final class RemoteReportRequest implements AutoCloseable {
  private static final int TEXTS = Long.BYTES; // where they begin in an answer
  private static final int PIECE = 512;
  private static final long NOBODY = -1; // instead of a generation
  private static final Logger log = LoggerFactory.getLogger(RemoteReportRequest.class);

  private final GroupTransport group;
  private final RankMap ranks;
  private final Liveness liveness;
  private final long generation;
  private final ByteBuffer requests;
  private final Message[] listening;
  private final BitSet asked = new BitSet(); // this rank, by those
  private final BitSet unanswered = new BitSet(); // of them
  private final List<Message> sends = new ArrayList<>(0);
  private ByteBuffer[] answers; // made when this rank asks
  private Message[] answering;
  private boolean silent;

  /**
   * What a rank says for its node.
   *
   * @param summarizer which rank is to sum up, as far as that node knows, or {@link
   *     RankMap#NO_RANK}
   * @param folder where that node's reports are
   * @param lines about each rank of that node, in their order
   */
  record Answer(int summarizer, String folder, List<Line> lines) {}

  /**
   * What a node's ranks know of one of them.
   *
   * @param died whether its process is gone
   * @param text what it is doing
   */
  record Line(boolean died, String text) {}

  /** Listens from now on. */
  public RemoteReportRequest(GroupTransport group, Liveness liveness, long generation) {
    this.group = group;
    this.ranks = group.ranks();
    this.liveness = liveness;
    this.generation = generation;
    listening = new Message[group.size()];
    requests = HostBuffers.allocate(group.size() * Long.BYTES);
    for (int peer = 0; peer < listening.length; peer++) {
      if (!ranks.isNear(peer)) {
        requests.putLong(peer * Long.BYTES, NOBODY);
        ByteBuffer request = requests.slice(peer * Long.BYTES, Long.BYTES);
        listening[peer] = group.receiver(request, peer, Channel.REPORT_REQUEST);
        listening[peer].start();
      }
    }
  }

  /** Looks for questions, and returns who has asked and not been answered. */
  synchronized List<Integer> unanswered() {
    if (silent) {
      return List.of();
    }
    sends.forEach(RemoteReportRequest::isOver); // drives them on
    for (int peer = 0; peer < listening.length; peer++) {
      if (listening[peer] != null && !asked.get(peer) && hasRequest(peer)) {
        asked.set(peer);
        unanswered.set(peer);
      }
    }
    return unanswered.isEmpty() ? List.of() : unanswered.stream().boxed().toList();
  }

  private boolean hasRequest(int peer) {
    try {
      if (!listening[peer].test()) {
        return false;
      }
      if (requests.getLong(peer * Long.BYTES) == generation) {
        return true;
      }
      listening[peer].start(); // from an earlier owner of these tags
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot listen to rank {}", group.rank(), peer, e);
    }
    return false;
  }

  /** Whether a rank has been seen to ask. */
  synchronized boolean hasAsked(int peer) {
    return asked.get(peer);
  }

  /**
   * Answers, unless the asker is known to be gone by now.
   *
   * @param asker who has asked
   */
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
   * Asks.
   *
   * @param peer a rank of another node, who is not known to be gone
   */
  synchronized void ask(int peer) {
    if (answers == null) {
      answers = new ByteBuffer[listening.length];
      answering = new Message[listening.length];
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
    ByteBuffer request = HostBuffers.allocate(Long.BYTES);
    request.putLong(0, generation);
    send(request, peer, Channel.REPORT_REQUEST);
  }

  /** What a rank has answered, or null if it has not. */
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
    return folder.isEmpty() ? null : new Answer(bytes.getInt(0), folder, lines); // or it was lost
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

  /** The ranks of a node are in the same order everywhere, so a number is enough. */
  private int bytesFrom(int peer) {
    return TEXTS + (1 + ranks.onNode(ranks.nodeOf(peer)).size()) * PIECE;
  }

  private static boolean isOver(Message message) {
    try {
      return message.test();
    } catch (GradientSyncException e) {
      return false; // whoever is lost says nothing
    }
  }

  /** From now on says and hears nothing: the messages below may end at any time. */
  synchronized void silence() {
    silent = true;
  }

  @Override
  public synchronized void close() {
    silent = true;
    sends.forEach(this::close);
    for (int peer = 0; peer < listening.length; peer++) {
      close(listening[peer]);
      close(answering == null ? null : answering[peer]);
    }
  }

  private void close(Message message) {
    try {
      if (message != null) {
        message.close();
      }
    } catch (GradientSyncException e) {
      log.debug("rank {} cannot end a message", group.rank(), e); // to one that has died, say
    }
  }
}
