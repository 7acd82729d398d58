package org.gradientsync.core.collectives;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.Stream;
import org.gradientsync.core.backend.PlanCache;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.ForwardingReducer;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.Unclosed;

/**
 * Reduces FLOAT32 sums and averages as a 16-bit type with another reducer: the elements are rounded
 * into scratch memory, reduced there, and widened back. All other calls go to the other reducer
 * unchanged.
 *
 * <p>The scratch takes up to 32 MiB; larger buffers are reduced piece by piece. Calls for buffers
 * on several streams take turns on the device.
 */
public final class CompressedReducer extends ForwardingReducer<Reducer> {
  private static final int PIECE_BYTES = 32 << 20;

  private final ProcessGroup group;
  private final BackendDevice device;
  private final DataType wire;
  private final long most; // elements per piece
  private final PlanCache<Pieces> plans;
  private final CollectiveCall inner = new CollectiveCall();
  private final Consumer<CollectiveCall> compress = this::compress;
  private final Event free;
  private DeviceBuffer scratch;
  private Stream last;

  /**
   * The part of a call that goes through the scratch at once: the same range of each block.
   *
   * @param wideIn the range in each block of the call's input, as FLOAT32
   * @param narrowIn where each of these is rounded to, in {@code input}
   * @param input the ranges of all blocks in the scratch, one after the other
   * @param output the range of the result in the scratch: {@code input} if the call is in place,
   *     otherwise behind it
   * @param wideOut the range in the call's output, as FLOAT32; null if this rank has none
   */
  private record Piece(
      DeviceBuffer[] wideIn,
      DeviceBuffer[] narrowIn,
      DeviceBuffer input,
      DeviceBuffer output,
      DeviceBuffer wideOut) {}

  private record Pieces(Stream stream, List<Piece> pieces) implements AutoCloseable {
    @Override
    public void close() {
      for (Piece piece : pieces) {
        piece.input().close();
        piece.output().close();
      }
    }
  }

  /**
   * @param inner does the reducing; closed with this one
   * @param wire FLOAT16 or BFLOAT16, the same on all ranks
   */
  public CompressedReducer(Reducer inner, ProcessGroup group, BackendDevice device, DataType wire) {
    this(inner, group, device, wire, PIECE_BYTES);
  }

  /** For tests, with small pieces. */
  CompressedReducer(
      Reducer inner, ProcessGroup group, BackendDevice device, DataType wire, int pieceBytes) {
    super(inner);
    this.group = group;
    this.device = device;
    this.wire = wire;
    this.most = pieceBytes / wire.sizeInBytes();
    this.plans = new PlanCache<>(group);
    this.free = device.createEvent(false);
  }

  @Override
  public void run(CollectiveCall call) {
    if (!compresses(call)) {
      other.run(call);
      return;
    }
    synchronized (group) {
      // The inner reducer's rendezvous compares 16-bit pieces, which are not the user's buffers.
      group.run(call, compress);
    }
  }

  private void compress(CollectiveCall call) {
    if (call.blockCount(group.size()) == 0) {
      return;
    }
    Pieces plan = plans.get(call);
    if (plan == null) {
      plan = plan(call);
      plans.put(call, plan);
    }
    order(plan.stream);
    for (int i = 0; i < plan.pieces.size(); i++) {
      Piece piece = plan.pieces.get(i);
      for (int block = 0; block < piece.wideIn.length; block++) {
        device.convert(piece.wideIn[block], piece.narrowIn[block]);
      }
      DeviceBuffer output = piece.wideOut == null ? null : piece.output;
      other.run(inner.set(call.kind(), piece.input, output, call.op(), call.root()));
      if (output != null) {
        device.convert(output, piece.wideOut);
      }
    }
    free.record(plan.stream);
  }

  /** Each piece has as many elements of each block. */
  private Pieces plan(CollectiveCall call) {
    boolean inPlace = call.kind() == Kind.ALL_REDUCE;
    int blocks = call.kind().inputBlocks(group.size());
    int held = inPlace ? blocks : blocks + 1;
    long count = call.blockCount(group.size());
    long longest = Math.max(1, Math.min(count, most / held));
    reserve(longest * held);
    Stream stream = device.streamOf(call.buffer());
    List<Piece> pieces = new ArrayList<>();
    for (long first = 0; first < count; first += longest) {
      long length = Math.min(longest, count - first);
      // Where an earlier piece is as long, its views serve again: the inner reducer makes one plan.
      Piece same = first > 0 && length == longest ? pieces.get(0) : null;
      DeviceBuffer input =
          same != null ? same.input : device.on(stream, scratch.slice(0, blocks * length));
      DeviceBuffer output =
          same != null
              ? same.output
              : inPlace ? input : device.on(stream, scratch.slice(blocks * length, length));
      DeviceBuffer[] from = new DeviceBuffer[blocks];
      DeviceBuffer[] to = new DeviceBuffer[blocks];
      for (int block = 0; block < blocks; block++) {
        from[block] = call.in().slice(block * count + first, length);
        to[block] = input.slice(block * length, length);
      }
      DeviceBuffer wideOut = call.out() == null ? null : call.out().slice(first, length);
      pieces.add(new Piece(from, to, input, output, wideOut));
    }
    return new Pieces(stream, pieces);
  }

  /** Calls for buffers on several streams take turns. */
  private void order(Stream stream) {
    if (stream != last) {
      stream.waitFor(free);
      last = stream;
    }
  }

  /** Makes the scratch large enough. This closes the plans for a smaller one. */
  private void reserve(long elements) {
    if (scratch == null || scratch.count() < elements) {
      freeScratch();
      long powerOfTwo = Long.highestOneBit(2 * elements - 1);
      scratch = Unclosed.exempt(device.allocate(wire, Math.min(most, powerOfTwo)));
      device.await(scratch); // it must be zeroed before other streams write to it
    }
  }

  private void freeScratch() {
    if (scratch != null) {
      free.await();
      plans.close();
      scratch.close();
      scratch = null;
    }
  }

  @Override
  public void prepare(CollectiveCall call) {
    if (call.kind() == Kind.ALL_REDUCE || !compresses(call)) {
      other.prepare(call);
    } else {
      synchronized (group) {
        group.meetToPrepare(call); // the inner reducer's calls are of scratch memory
      }
    }
  }

  /** Whether a call goes through the scratch. */
  private boolean compresses(CollectiveCall call) {
    return call.op() != null
        && call.op().adds()
        && call.in().type() == DataType.FLOAT32
        && group.size() > 1;
  }

  @Override
  public boolean compresses() {
    return true;
  }

  @Override
  public void close() {
    synchronized (group) {
      try {
        freeScratch();
        free.close();
      } finally {
        other.close();
      }
    }
  }
}
