package org.gradientsync.collective;

import java.nio.LongBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets ranks of one node meet in shared memory though their gradients go another way: a few loads
 * and stores instead of a message to and from each other rank.
 */
public final class NodeMeeting {
  private static final Logger log = LoggerFactory.getLogger(NodeMeeting.class);

  private NodeMeeting() {}

  /**
   * Meets in shared memory from the next call on, if all ranks are on one node, can share memory,
   * and none has the setting {@code meeting=messages}; otherwise nothing changes. Collective.
   *
   * @param group the ranks, which are processes
   * @param settings this rank's
   * @throws IllegalArgumentException if the setting is anything else
   */
  public static void begin(Group group, Settings settings) {
    boolean messages = settings.meetsByMessages();
    if (group.size() == 1 || !NodeMemory.isPossible(group)) {
      return;
    }
    long[] agreed = {messages ? 0 : 1};
    new GroupCommunicator(group).allReduce(LongBuffer.wrap(agreed), ReduceOp.MIN);
    if (agreed[0] == 0) {
      return;
    }
    try {
      NodeMemory memory = NodeMemory.share(group, Board.BYTES);
      group.meetOn(new Board(memory, group.rank(), group.size()));
    } catch (UnavailableException e) {
      log.info("rank {} meets the others by messages: {}", group.rank(), e.getMessage());
    }
  }
}
