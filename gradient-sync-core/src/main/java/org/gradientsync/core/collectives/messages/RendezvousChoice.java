package org.gradientsync.core.collectives.messages;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import org.gradientsync.Communicator;
import org.gradientsync.SumOrder;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.SharedFiles;
import org.gradientsync.core.ranks.NodeLayout;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Settings;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the rendezvous of ranks whose gradients travel by messages. Ranks of one node use shared
 * memory: a few loads and stores instead of messages. On several nodes, one rank of each exchanges
 * messages for all ({@link MessageRendezvous}). Where memory cannot be shared, each rank does so
 * for itself. Small gradients travel with these messages.
 */
public final class RendezvousChoice {
  private static final Logger log = LoggerFactory.getLogger(RendezvousChoice.class);

  private RendezvousChoice() {}

  /**
   * Uses shared memory on each node from the next call on if the ranks of each can share memory,
   * and none has the setting {@code dev.rendezvous=messages}; otherwise messages between all ranks.
   * Collective, before the reducers of the group are made.
   *
   * @param ranks that are processes
   * @param carriesPayload whether messages may carry small gradients; the same on all ranks
   * @throws IllegalArgumentException if the setting has another value
   */
  public static void choose(RankGroup ranks, Settings settings, boolean carriesPayload) {
    choose(
        ranks,
        settings,
        carriesPayload,
        communicator ->
            new SharedMemoryRendezvous(
                NodeMemory.share(communicator, SharedMemoryRendezvous.BYTES),
                ranks.rank(),
                ranks.size(),
                () -> {}));
  }

  /**
   * As above, with another way to share memory on one node: ranks that are threads need no files.
   *
   * @param onOneNode makes the rendezvous, or throws {@link UnavailableException} on all ranks
   */
  public static void choose(
      RankGroup ranks,
      Settings settings,
      boolean carriesPayload,
      Function<Communicator, Rendezvous> onOneNode) {
    boolean messages = settings.meetsByMessages();
    ProcessGroup group = ProcessGroup.of(ranks);
    if (group.size() == 1) {
      return;
    }
    GroupCommunicator communicator = new GroupCommunicator(group);
    long[] wishes = new long[group.size()];
    LongBuffer own = LongBuffer.wrap(new long[] {messages ? 1 : 0});
    communicator.allGather(own, LongBuffer.wrap(wishes));
    if (Arrays.stream(wishes).anyMatch(wish -> wish != 0)) {
      useMessages(group, carriesPayload);
      return;
    }
    try {
      if (communicator.nodeCount() == 1) {
        group.parts().arrivals().useRendezvous(onOneNode.apply(communicator));
      } else {
        useNodes(group, communicator, new SharedFiles(), settings.order() == SumOrder.ANY);
      }
    } catch (UnavailableException e) {
      log.info("rank {} meets the others by messages: {}", group.rank(), e.getMessage());
      useMessages(group, carriesPayload);
    }
  }

  private static void useMessages(ProcessGroup group, boolean carriesPayload) {
    if (carriesPayload) {
      group.parts().arrivals().carryContributions();
    }
  }

  /**
   * Meets over several nodes from the next call on. Collective.
   *
   * @param files create this rank's memory
   * @param sums whether sums may travel with the calls; the same on all ranks
   * @throws UnavailableException on all ranks if one of them fails
   */
  public static MessageRendezvous useNodes(
      ProcessGroup group, Communicator communicator, SharedFiles files, boolean sums) {
    NodeLayout layout = new NodeLayout(group.ranks());
    NodeMemory memory = share(layout, communicator, files, sums);
    MessageRendezvous rendezvous =
        new MessageRendezvous(
            group.messages(), layout, memory, group.parts().arrivals().notices(), true, sums);
    group.parts().arrivals().useRendezvous(rendezvous);
    return rendezvous;
  }

  private static NodeMemory share(
      NodeLayout layout, Communicator communicator, SharedFiles files, boolean sums) {
    int size = communicator.size();
    int nodeSize = layout.ranksOf(layout.node()).size();
    IntUnaryOperator bytes = rank -> MessageRendezvous.bytes(rank, nodeSize, size, true, sums);
    if (layout.most() == 1) {
      return NodeMemory.ofOne(bytes.applyAsInt(0), files);
    }
    NodeMemory memory = null;
    String failure = "";
    try (Communicator node = communicator.split(layout.node(), communicator.rank())) {
      memory =
          nodeSize == 1
              ? NodeMemory.ofOne(bytes.applyAsInt(0), files)
              : NodeMemory.share(node, bytes, files);
    } catch (UnavailableException e) {
      failure = e.getMessage();
    }
    Agreement.requireAll(communicator, failure);
    return memory;
  }
}
