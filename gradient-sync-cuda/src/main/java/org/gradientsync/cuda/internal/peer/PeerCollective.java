package org.gradientsync.cuda.internal.peer;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.Consumer;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.internal.matching.Call;
import org.gradientsync.spi.Collective;

/**
 * A collective that the ranks have registered together: which one, its input and output on this
 * rank, its operation and its root.
 */
final class PeerCollective implements AutoCloseable {
  private static final Object[][] KINDS =
      new Object[Collective.values().length][ReduceOp.values().length + 1];

  static {
    for (Object[] kinds : KINDS) {
      for (int op = 0; op < kinds.length; op++) {
        kinds[op] = new Object();
      }
    }
  }

  final Collective collective;
  final int number;
  final CudaBuffer in; // or null
  final CudaBuffer out; // or null
  final ReduceOp op; // or null
  final int root;
  final long count;

  /** The mappings to release at the end. */
  final PeerMemory.Mapped[] mapped;

  /** The copy of the input that other ranks read, if they cannot map the input; or null. */
  final CudaBuffer copy;

  /** Set right after construction, unless planning fails. */
  PeerPlan plan;

  /** Whether a graph of the caller contains one of its calls. */
  boolean captured;

  private final Consumer<PeerCollective> end;

  /**
   * @param count the number of elements of a block
   * @param end ends it, when one of its buffers is closed
   */
  PeerCollective(
      Collective collective,
      int number,
      CudaBuffer in,
      CudaBuffer out,
      ReduceOp op,
      int root,
      long count,
      PeerMemory.Mapped[] mapped,
      CudaBuffer copy,
      Consumer<PeerCollective> end) {
    this.collective = collective;
    this.number = number;
    this.in = in;
    this.out = out;
    this.op = op;
    this.root = root;
    this.count = count;
    this.mapped = mapped;
    this.copy = copy;
    this.end = end;
  }

  /** A constant for each collective and operation, for lookups. */
  static Object kind(Collective collective, ReduceOp op) {
    return KINDS[collective.ordinal()][op == null ? 0 : op.ordinal() + 1];
  }

  /**
   * Whether one rank has other buffers than the others, so that it may come with new ones while the
   * others come with those of the call before. Then the hosts meet for each call.
   */
  static boolean isOneSided(Collective collective) {
    return collective == Collective.GATHER || collective == Collective.SCATTER;
  }

  /** The buffer to whose stream the calls belong. */
  CudaBuffer ordering() {
    return out != null ? out : in;
  }

  /** The call as the hosts' rendezvous describes it. */
  static String describe(
      Collective collective, CudaBuffer in, CudaBuffer out, long count, ReduceOp op, int root) {
    ByteBuffer call = ByteBuffer.allocate(Call.BYTES).order(ByteOrder.nativeOrder());
    Call.write(
        call,
        0,
        Call.Kind.of(collective),
        Call.element((in != null ? in : out).type()),
        count,
        op,
        collective.hasRoot() ? root : Call.NO_ROOT);
    Call.writeNames(call, collective, in, out);
    return Call.describe(call);
  }

  @Override
  public void close() {
    end.accept(this);
  }
}
