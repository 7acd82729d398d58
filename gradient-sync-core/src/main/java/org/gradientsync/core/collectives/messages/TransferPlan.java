package org.gradientsync.core.collectives.messages;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.Channel;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Resources;

/**
 * The messages of a collective that only moves elements, or of a single message, prepared once and
 * run many times. Each pair of ranks exchanges its blocks directly, piece by piece.
 */
final class TransferPlan implements Plan {
  private static final long PIECE_BYTES = 16 << 20;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final List<Message[]> receives = new ArrayList<>(); // for each piece, by rank
  private final List<Message[]> sends = new ArrayList<>();
  private DeviceBuffer ownSource; // this rank's own block, or null if it stays where it is
  private DeviceBuffer ownTarget;

  private TransferPlan(ProcessGroup group, BackendDevice device) {
    this.group = group;
    this.device = device;
  }

  /** The plan of a call. */
  static TransferPlan of(ProcessGroup group, BackendDevice device, CollectiveCall call) {
    TransferPlan plan = new TransferPlan(group, device);
    try {
      switch (call.kind()) {
        case SEND, RECEIVE -> plan.prepareMessage(call);
        default -> plan.prepareBlocks(call);
      }
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, plan);
      throw e;
    }
    return plan;
  }

  private void prepareBlocks(CollectiveCall call) {
    int rank = group.rank();
    int size = group.size();
    long count = call.blockCount(size);
    boolean inBlocks = call.kind().inputBlocks(size) > 1;
    boolean outBlocks = call.kind().outputBlocks(size) > 1;
    DeviceBuffer[] toSend = new DeviceBuffer[size];
    DeviceBuffer[] toReceive = new DeviceBuffer[size];
    for (int peer = 0; peer < size; peer++) {
      if (call.in() != null && call.kind().hasOutput(peer, call.root())) {
        toSend[peer] = call.in().slice(inBlocks ? peer * count : 0, count);
      }
      if (call.out() != null && call.kind().hasInput(peer, call.root())) {
        toReceive[peer] = call.out().slice(outBlocks ? peer * count : 0, count);
      }
    }
    if (toSend[rank] != null
        && toReceive[rank] != null
        && !overlap(toSend[rank], toReceive[rank])) {
      ownSource = toSend[rank];
      ownTarget = toReceive[rank];
    }
    toSend[rank] = null;
    toReceive[rank] = null;
    prepare(count, toSend, toReceive, Channel.DATA);
  }

  private static boolean overlap(DeviceBuffer a, DeviceBuffer b) {
    return ((AbstractDeviceBuffer) a).overlaps((AbstractDeviceBuffer) b);
  }

  private void prepareMessage(CollectiveCall call) {
    DeviceBuffer[] data = new DeviceBuffer[group.size()];
    DeviceBuffer[] none = new DeviceBuffer[group.size()];
    data[call.peer()] = call.buffer();
    boolean sends = call.sends();
    prepare(call.buffer().count(), sends ? data : none, sends ? none : data, Channel.MESSAGES);
  }

  private void prepare(long count, DeviceBuffer[] toSend, DeviceBuffer[] toReceive, int channel) {
    for (long first = 0; first < count; ) {
      Message[] incoming = new Message[toSend.length];
      Message[] outgoing = new Message[toSend.length];
      receives.add(incoming);
      sends.add(outgoing);
      long length = 0;
      for (int peer = 0; peer < toSend.length; peer++) {
        DeviceBuffer any = toSend[peer] != null ? toSend[peer] : toReceive[peer];
        if (any == null) {
          continue;
        }
        length = Math.min(PIECE_BYTES / any.type().sizeInBytes(), count - first);
        if (toReceive[peer] != null) {
          incoming[peer] = message(toReceive[peer].slice(first, length), peer, channel, false);
        }
        if (toSend[peer] != null) {
          outgoing[peer] = message(toSend[peer].slice(first, length), peer, channel, true);
        }
      }
      if (length == 0) {
        return; // nothing moves on this rank
      }
      first += length;
    }
  }

  private Message message(DeviceBuffer piece, int peer, int channel, boolean sends) {
    return BufferMessages.message(
        group.messages(), piece, BufferMessages.view(piece), peer, channel, sends);
  }

  @Override
  public void run(CollectiveCall call) {
    if (call.in() != null) {
      device.await(call.in());
    }
    if (call.out() != null && call.out() != call.in()) {
      device.await(call.out());
    }
    if (!receives.isEmpty()) {
      start(0);
    }
    if (ownSource != null) {
      device.copy(ownSource, ownTarget);
    }
    for (int piece = 0; piece < receives.size(); piece++) {
      if (piece > 0) {
        start(piece);
      }
      await(piece);
    }
  }

  /** The number of pieces. */
  int pieces() {
    return receives.size();
  }

  /** Starts the messages of a piece. */
  void start(int piece) {
    BufferMessages.start(receives.get(piece));
    BufferMessages.start(sends.get(piece));
  }

  /** Waits for the messages of a piece. */
  void await(int piece) {
    BufferMessages.await(group, receives.get(piece));
    BufferMessages.await(group, sends.get(piece));
  }

  @Override
  public void close() {
    receives.forEach(Resources::closeAll);
    sends.forEach(Resources::closeAll);
  }
}
