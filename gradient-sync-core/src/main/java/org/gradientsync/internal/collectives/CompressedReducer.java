package org.gradientsync.internal.collectives;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.internal.group.ProcessGroup;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Collective;
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
  private final PlanCache<Plan> plans;
  private final CollectivePlans<PiecesPlan> collectives;
  private final Event free;
  private DeviceBuffer scratch;
  private Stream last;

  /** A buffer's pieces, and the part of the scratch for each of them, on the buffer's stream. */
  private record Plan(Stream stream, DeviceBuffer[] wide, DeviceBuffer[] narrow) {}

  /** One piece of each block of a collective's input, in front of one of its output. */
  private record Piece(
      DeviceBuffer[] wideIn,
      DeviceBuffer[] narrowIn,
      DeviceBuffer input,
      DeviceBuffer output,
      DeviceBuffer wideOut) {}

  private record PiecesPlan(Stream stream, List<Piece> pieces) implements AutoCloseable {
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
   * @param group the ranks
   * @param device the device of the buffers
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
    this.plans = new PlanCache<>(group, CompressedReducer::end);
    this.collectives = new CollectivePlans<>(group);
    this.free = device.createEvent(false);
  }

  @Override
  public String name() {
    return other.name();
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    if (!compresses(op, buffer)) {
      other.allReduce(buffer, op);
      return;
    }
    synchronized (group) {
      // The inner reducer's rendezvous compares 16-bit pieces, which are not the user's buffers.
      group.meetForAllReduce(buffer, op);
      if (buffer.count() == 0) {
        group.finished(); // otherwise the last piece finishes the call
        return;
      }
      try {
        run(plan((AbstractDeviceBuffer) buffer), op);
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        throw group.lost("the call failed in the middle: " + e, e);
      }
    }
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (!compresses(op, in)) {
      other.run(collective, in, out, op, root);
      return;
    }
    synchronized (group) {
      group.meetFor(collective, in, out, op, root);
      long count = collective.blockCount(in, out, group.size());
      if (count == 0) {
        group.finished(); // otherwise the last piece finishes the call
        return;
      }
      try {
        PiecesPlan plan = collectives.get(collective, in, out, root);
        if (plan == null) {
          plan = pieces(collective, in, out, count);
          collectives.put(collective, in, out, root, plan);
        }
        run(plan, collective, op, root);
      } catch (RankLostException e) {
        throw e;
      } catch (RuntimeException | Error e) {
        throw group.lost("the call failed in the middle: " + e, e);
      }
    }
  }

  /** Each piece has as many elements of each block. */
  private PiecesPlan pieces(Collective collective, DeviceBuffer in, DeviceBuffer out, long count) {
    int blocks = collective.inputBlocks(group.size());
    long longest = Math.max(1, Math.min(count, most / (blocks + 1)));
    reserve(longest * (blocks + 1));
    Stream stream = device.streamOf(out != null ? out : in);
    List<Piece> pieces = new ArrayList<>();
    for (long first = 0; first < count; first += longest) {
      long length = Math.min(longest, count - first);
      DeviceBuffer narrowIn = device.on(stream, scratch.slice(0, blocks * length));
      DeviceBuffer narrowOut = device.on(stream, scratch.slice(blocks * length, length));
      DeviceBuffer[] from = new DeviceBuffer[blocks];
      DeviceBuffer[] to = new DeviceBuffer[blocks];
      for (int block = 0; block < blocks; block++) {
        from[block] = in.slice(block * count + first, length);
        to[block] = narrowIn.slice(block * length, length);
      }
      pieces.add(
          new Piece(from, to, narrowIn, narrowOut, out == null ? null : out.slice(first, length)));
    }
    return new PiecesPlan(stream, pieces);
  }

  private void run(PiecesPlan plan, Collective collective, ReduceOp op, int root) {
    order(plan.stream);
    for (int i = 0; i < plan.pieces.size(); i++) {
      Piece piece = plan.pieces.get(i);
      for (int block = 0; block < piece.wideIn.length; block++) {
        device.convert(piece.wideIn[block], piece.narrowIn[block]);
      }
      DeviceBuffer output = piece.wideOut == null ? null : piece.output;
      other.run(collective, piece.input, output, op, root);
      if (output != null) {
        device.convert(output, piece.wideOut);
      }
    }
    free.record(plan.stream);
  }

  private void run(Plan plan, ReduceOp op) {
    order(plan.stream);
    for (int i = 0; i < plan.wide.length; i++) {
      device.convert(plan.wide[i], plan.narrow[i]);
      other.allReduce(plan.narrow[i], op);
      device.convert(plan.narrow[i], plan.wide[i]);
    }
    free.record(plan.stream);
  }

  /** Calls for buffers on several streams take turns. */
  private void order(Stream stream) {
    if (stream != last) {
      stream.waitFor(free);
      last = stream;
    }
  }

  private Plan plan(AbstractDeviceBuffer buffer) {
    Plan plan = plans.get(buffer);
    if (plan == null) {
      long piece = Math.min(most, buffer.count());
      reserve(piece);
      Stream stream = device.streamOf(buffer);
      int count = (int) ((buffer.count() - 1) / piece + 1);
      plan = new Plan(stream, new DeviceBuffer[count], new DeviceBuffer[count]);
      for (int i = 0; i < count; i++) {
        long length = Math.min(piece, buffer.count() - i * piece);
        plan.wide[i] = buffer.slice(i * piece, length);
        plan.narrow[i] =
            i > 0 && length == piece
                ? plan.narrow[0] // so that the inner reducer makes one plan
                : device.on(stream, scratch.slice(0, length));
      }
      plans.put(buffer, plan);
    }
    return plan;
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
      collectives.close();
      scratch.close();
      scratch = null;
    }
  }

  private static void end(Plan plan) {
    for (DeviceBuffer piece : plan.narrow) {
      piece.close();
    }
  }

  @Override
  public void register(
      Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    if (!compresses(op, in)) {
      other.register(collective, in, out, op, root);
    }
  }

  /** Whether a call goes through the scratch. */
  private boolean compresses(ReduceOp op, DeviceBuffer in) {
    return op != null && op.adds() && in.type() == DataType.FLOAT32 && group.size() > 1;
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
