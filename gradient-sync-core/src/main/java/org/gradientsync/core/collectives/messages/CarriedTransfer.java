package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.rendezvous.Rendezvous;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.Resources;

/**
 * A collective whose inputs are so small that they travel with the calls of the rendezvous. No rank
 * reads another one's buffers, so none waits at the end until the others have read its own.
 */
public final class CarriedTransfer implements Rendezvous.Payload, AutoCloseable {
  /** Where the inputs are that travel with the calls of a slot. */
  public interface Memory {
    ByteBuffer of(int peer, int slot);
  }

  private final HostBuffer in; // null if no other rank reads it
  private final int rank;
  private final int bytes;
  private final HostBuffer[][] inputs; // by slot and rank: what the calls carry
  private final BlockReads[] plans; // by slot

  public CarriedTransfer(
      HostDevice device, Memory memory, CollectiveCall call, int rank, int size) {
    boolean sends = call.kind() != Kind.BROADCAST || rank == call.root();
    in = sends ? (HostBuffer) call.in() : null;
    this.rank = rank;
    DataType type = call.buffer().type();
    bytes = (int) bytes(call, size);
    inputs = new HostBuffer[Rendezvous.SLOTS][size];
    plans = new BlockReads[inputs.length];
    for (int slot = 0; slot < inputs.length; slot++) {
      for (int peer = 0; peer < size; peer++) {
        inputs[slot][peer] =
            (HostBuffer)
                device.wrap(
                    type, memory.of(peer, slot).slice(0, bytes).order(ByteOrder.nativeOrder()));
      }
      HostBuffer[] read = inputs[slot].clone();
      read[rank] = in; // which may be in place
      plans[slot] = new BlockReads(device, read, call, rank);
    }
  }

  /** The size of a rank's input; the same on all ranks whose calls match. */
  public static long bytes(CollectiveCall call, int size) {
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
  public void run(int slot, ReduceOp op) {
    plans[slot].run(op);
  }

  @Override
  public void close() {
    for (HostBuffer[] slot : inputs) {
      Resources.closeAll(slot);
    }
  }
}
