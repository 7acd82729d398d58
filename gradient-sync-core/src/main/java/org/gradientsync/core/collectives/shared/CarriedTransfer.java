package org.gradientsync.core.collectives.shared;

import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.core.rendezvous.SharedMemoryRendezvous;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;

/**
 * A collective whose inputs are so small that they travel with the calls of the rendezvous. No rank
 * reads another one's buffers, so none waits at the end until the others have read its own.
 */
final class CarriedTransfer implements Rendezvous.Payload, AutoCloseable {
  /**
   * An all-reduce is carried up to this size. Each rank then adds all elements, and not only those
   * of its shard, which saves two waits for the others.
   */
  private static final int MAX_REDUCED = 2 << 10;

  private static final int MAX_REDUCED_OF_ALL = 16 << 10;

  private final HostBuffer in; // or null
  private final int rank;
  private final int bytes;
  private final HostBuffer[][] inputs; // by slot and rank: what the calls carry
  private final SharedTransferPlan[] plans; // by slot

  CarriedTransfer(
      HostDevice device,
      SharedMemoryRendezvous rendezvous,
      CollectiveCall call,
      int rank,
      int size) {
    this.in = (HostBuffer) call.in();
    this.rank = rank;
    DataType type = call.buffer().type();
    bytes = (int) bytes(call, size);
    inputs = new HostBuffer[Rendezvous.SLOTS][size];
    plans = new SharedTransferPlan[inputs.length];
    for (int slot = 0; slot < inputs.length; slot++) {
      for (int peer = 0; peer < size; peer++) {
        inputs[slot][peer] =
            (HostBuffer)
                device.wrap(
                    type,
                    rendezvous.payload(peer, slot).slice(0, bytes).order(ByteOrder.nativeOrder()));
      }
      HostBuffer[] read = inputs[slot].clone();
      read[rank] = in; // which may be in place
      plans[slot] = new SharedTransferPlan(device, read, call, rank);
    }
  }

  /** Whether the inputs fit; the same on all ranks whose calls match. */
  static boolean fits(CollectiveCall call, int size) {
    long bytes = bytes(call, size);
    return call.kind() == Kind.ALL_REDUCE
        ? bytes <= MAX_REDUCED && bytes * size <= MAX_REDUCED_OF_ALL
        : bytes <= SharedMemoryRendezvous.PAYLOAD_BYTES;
  }

  private static long bytes(CollectiveCall call, int size) {
    long count = call.blockCount(size) * call.kind().inputBlocks(size);
    return count * call.buffer().type().sizeInBytes();
  }

  @Override
  public int bytes() {
    return bytes;
  }

  @Override
  public void write(int slot) {
    if (in != null) {
      inputs[slot][rank].copyRange(0, in, in.count());
    }
  }

  /** Runs after the rendezvous. */
  void run(int slot, ReduceOp op) {
    plans[slot].run(op);
  }

  @Override
  public void close() {
    for (HostBuffer[] slot : inputs) {
      Resources.closeAll(slot);
    }
  }
}
