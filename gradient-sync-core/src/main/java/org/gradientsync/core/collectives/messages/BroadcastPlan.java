package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * The messages of a broadcast, prepared once and run many times. Each rank passes on what it
 * receives, piece by piece: small buffers along a binomial tree, in ceil(log2 n) rounds, and large
 * ones along a chain of the ranks, so that each link carries them about once.
 */
final class BroadcastPlan implements Plan {
  private static final long MIN_PIECE_BYTES = 8 << 10;
  private static final long MAX_PIECES = 1024; // unless they are of the maximum size
  private static final long MAX_PIECE_BYTES = 1 << 30; // fits a Java buffer

  /** For each rank; above this size, the time that a link needs is more than that of the hops. */
  private static final long CHAINED_BYTES = 4 << 10;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final int source; // the rank from which this one receives, or its own number
  private final int[] targets;
  private final List<Message> receives = new ArrayList<>(); // by piece
  private final List<Message[]> sends = new ArrayList<>(); // by piece, to each target

  BroadcastPlan(ProcessGroup group, BackendDevice device, CollectiveCall call) {
    this.group = group;
    this.device = device;
    int size = group.size();
    int rank = group.rank();
    DeviceBuffer buffer = call.buffer();
    long bytes = buffer.sizeInBytes();
    boolean chained = isChained(bytes, size);
    int place = Math.floorMod(rank - call.root(), size);
    source = (call.root() + source(place, chained)) % size;
    targets = targets(place, size, chained);
    for (int i = 0; i < targets.length; i++) {
      targets[i] = (call.root() + targets[i]) % size;
    }
    long piece = (chained ? pieceBytes(bytes, size) : bytes) / buffer.type().sizeInBytes();
    try {
      for (long first = 0; first < buffer.count(); first += piece) {
        prepare(buffer.slice(first, Math.min(piece, buffer.count() - first)));
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  private static boolean isChained(long bytes, int ranks) {
    return bytes >= ranks * CHAINED_BYTES;
  }

  /** The size at which filling the chain takes as long as the overhead of all messages. */
  private static long pieceBytes(long bytes, int ranks) {
    long balanced = Long.highestOneBit(Math.max(1, Math.round(Math.sqrt(bytes * 12_500. / ranks))));
    long least = Math.max(MIN_PIECE_BYTES, Long.highestOneBit(bytes / MAX_PIECES) * 2);
    return Math.min(MAX_PIECE_BYTES, Math.max(balanced, least));
  }

  /** From which place a place receives; its own for the root, whose place is 0. */
  static int source(int place, boolean chained) {
    return chained ? Math.max(0, place - 1) : place - Integer.lowestOneBit(place);
  }

  /** To which places a place sends, the one with most to pass on first. */
  static int[] targets(int place, int size, boolean chained) {
    List<Integer> targets = new ArrayList<>();
    int below = place == 0 ? Integer.highestOneBit(size - 1) << 1 : Integer.lowestOneBit(place);
    for (int distance = chained ? 1 : below / 2; distance > 0; distance /= 2) {
      if (place + distance < size) {
        targets.add(place + distance);
      }
    }
    return targets.stream().mapToInt(Integer::intValue).toArray();
  }

  private void prepare(DeviceBuffer piece) {
    ByteBuffer view = BufferMessages.view(piece);
    if (source != group.rank()) {
      receives.add(
          BufferMessages.message(group.messages(), piece, view, source, Channel.DATA, false));
    }
    Message[] outgoing = new Message[targets.length];
    sends.add(outgoing);
    for (int i = 0; i < targets.length; i++) {
      outgoing[i] =
          BufferMessages.message(group.messages(), piece, view, targets[i], Channel.DATA, true);
    }
  }

  @Override
  public void run(CollectiveCall call) {
    device.await(call.buffer());
    for (int piece = 0; piece < receives.size(); piece++) {
      receives.get(piece).start();
    }
    for (int piece = 0; piece < sends.size(); piece++) {
      if (!receives.isEmpty()) {
        group.await(receives.get(piece), source);
      }
      BufferMessages.start(sends.get(piece));
    }
    for (int piece = 0; piece < sends.size(); piece++) {
      for (int i = 0; i < targets.length; i++) {
        group.await(sends.get(piece)[i], targets[i]);
      }
    }
  }

  @Override
  public void close() {
    Resources.closeAll(receives);
    sends.forEach(Resources::closeAll);
  }
}
