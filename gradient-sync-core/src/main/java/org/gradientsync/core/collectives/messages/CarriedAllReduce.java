package org.gradientsync.core.collectives.messages;

import java.util.EnumMap;
import java.util.Map;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.MessageRendezvous;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.spi.Resources;

/**
 * All-reduces over several nodes that are so small that all contributions travel with the calls of
 * the rendezvous. Every rank adds them itself, in rank order, so no message follows.
 */
public final class CarriedAllReduce implements Rendezvous.Payload, AutoCloseable {
  private final MessageRendezvous rendezvous;
  private final HostDevice device;
  private final int rank;
  private final int size;
  private final Map<DataType, HostBuffer[][]> contributions =
      new EnumMap<>(DataType.class); // by slot and rank
  private HostBuffer own; // the buffer of the current call
  private HostBuffer[][] all; // of its type

  CarriedAllReduce(MessageRendezvous rendezvous, HostDevice device, int rank, int size) {
    this.rendezvous = rendezvous;
    this.device = device;
    this.rank = rank;
    this.size = size;
  }

  MessageRendezvous rendezvous() {
    return rendezvous;
  }

  /** Whether a buffer is small enough; the same on all ranks whose calls match. */
  boolean fits(DeviceBuffer buffer) {
    return buffer.count() > 0 && buffer.sizeInBytes() <= rendezvous.calls().payloadBytes();
  }

  /** Sends a buffer's elements with the next call. */
  void begin(DeviceBuffer buffer) {
    own = (HostBuffer) buffer;
    all = contributions.get(buffer.type());
    if (all == null) {
      all = wrap(buffer.type());
      contributions.put(buffer.type(), all);
    }
    rendezvous.carry(this);
  }

  private HostBuffer[][] wrap(DataType type) {
    HostBuffer[][] views = new HostBuffer[Rendezvous.SLOTS][size];
    for (int slot = 0; slot < views.length; slot++) {
      for (int peer = 0; peer < size; peer++) {
        views[slot][peer] = (HostBuffer) device.wrap(type, rendezvous.calls().payload(peer, slot));
      }
    }
    return views;
  }

  @Override
  public int bytes() {
    return (int) own.sizeInBytes();
  }

  @Override
  public void write(int slot) {
    all[slot][rank].copyRange(0, own, own.count());
  }

  /** Whether the elements of all ranks have come with their calls. */
  boolean haveCome() {
    return rendezvous.haveAllCarried(bytes());
  }

  /** Adds them. */
  void finish(ReduceOp op) {
    device.reduce(all[rendezvous.slot()], own, op);
  }

  @Override
  public void close() {
    for (HostBuffer[][] views : contributions.values()) {
      for (HostBuffer[] slot : views) {
        Resources.closeAll(slot);
      }
    }
    contributions.clear();
  }
}
