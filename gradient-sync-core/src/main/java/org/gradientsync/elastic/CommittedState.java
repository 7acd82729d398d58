package org.gradientsync.elastic;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.gradientsync.Communicator;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.HostBuffers;

/** A copy of the whole state of a training, in host memory. For one thread. */
final class CommittedState {
  private static final int PIECE_BYTES = 16 << 20;
  private static final int SHAPE = 4; // words of a rank

  private final ElasticLoop loop;
  private final List<ByteBuffer> copies = new ArrayList<>();
  private byte[] rest = {};
  private long step = ElasticTraining.NOTHING;

  CommittedState(ElasticLoop loop) {
    this.loop = loop;
  }

  /** The step whose state it is, or {@link ElasticTraining#NOTHING}. */
  long step() {
    return step;
  }

  /** What {@link ElasticLoop#save} has returned; a copy, as the training may change its own. */
  byte[] rest() {
    return rest.clone();
  }

  /**
   * What ranks compare before one gets the state of another.
   *
   * @param trains whether this rank trains already
   * @return the number of buffers, and of their elements, a digest of types and counts, and whether
   *     it trains
   */
  long[] shape(boolean trains) {
    long elements = 0;
    long digest = 1;
    List<? extends DeviceBuffer> state = loop.state();
    for (DeviceBuffer buffer : state) {
      elements += buffer.count();
      digest = 31 * (31 * digest + buffer.count()) + buffer.type().ordinal();
    }
    return new long[] {state.size(), elements, digest, trains ? 1 : 0};
  }

  /**
   * Refuses ranks whose state has other buffers than rank 0's. If they have just joined, they fail
   * alone, and for the others they have left.
   *
   * @param shapes of all ranks
   * @throws RankLostException on those that go on without them
   */
  static void requireSame(long[] shapes, int rank) {
    int odd = 1;
    while (odd < shapes.length / SHAPE && isAsFirst(shapes, odd)) {
      odd++;
    }
    if (odd == shapes.length / SHAPE) {
      return;
    }
    boolean joins = shapes[SHAPE - 1] != 0; // rank 0 trains already
    if (joins && isAsFirst(shapes, rank)) {
      throw new RankLostException("a rank that was to join has another state", null, true);
    }
    int at = SHAPE * (joins ? rank : odd);
    throw new GradientSyncException(
        String.format(
            Locale.ROOT,
            "the states of rank 0 and rank %d differ: %d buffers with %d elements on rank 0,"
                + " %d buffers with %d elements on rank %d, rank=%d; %s with the same model and"
                + " options",
            at / SHAPE,
            shapes[0],
            shapes[1],
            shapes[at],
            shapes[at + 1],
            at / SHAPE,
            rank,
            joins ? "this process cannot join the training: start it" : "start all ranks"));
  }

  private static boolean isAsFirst(long[] shapes, int rank) {
    int at = SHAPE * rank;
    return Arrays.equals(shapes, 0, SHAPE - 1, shapes, at, at + SHAPE - 1);
  }

  /** Gives the others the training's state on one rank. Only ranks that are behind take it. */
  void broadcast(Communicator ranks, int root, boolean isBehind) {
    boolean own = ranks.rank() == root;
    for (DeviceBuffer piece : pieces()) {
      ByteBuffer bytes = HostBuffers.allocate((int) piece.sizeInBytes());
      if (own) {
        piece.copyTo(bytes);
      }
      ranks.broadcast(bytes, root);
      if (isBehind && !own) {
        piece.copyFrom(bytes);
      }
    }
  }

  /** The state in parts that fit in a message. */
  private List<DeviceBuffer> pieces() {
    List<DeviceBuffer> pieces = new ArrayList<>();
    for (DeviceBuffer buffer : loop.state()) {
      long most = PIECE_BYTES / buffer.type().sizeInBytes();
      for (long from = 0; from < buffer.count(); from += most) {
        pieces.add(buffer.slice(from, Math.min(most, buffer.count() - from)));
      }
    }
    return pieces;
  }

  /** Copies the state. */
  void take(long newStep) {
    List<DeviceBuffer> pieces = pieces();
    for (int i = 0; i < pieces.size(); i++) {
      if (i == copies.size()) {
        copies.add(HostBuffers.allocate((int) pieces.get(i).sizeInBytes()));
      }
      pieces.get(i).copyTo(copies.get(i));
    }
    rest = loop.save().clone();
    step = newStep;
  }

  /** Gives the copy back to the training. */
  void restore() {
    List<DeviceBuffer> pieces = pieces();
    for (int i = 0; i < pieces.size(); i++) {
      pieces.get(i).copyFrom(copies.get(i));
    }
  }
}
