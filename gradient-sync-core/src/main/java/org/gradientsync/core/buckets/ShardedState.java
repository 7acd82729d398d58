package org.gradientsync.core.buckets;

import java.util.List;
import java.util.Objects;
import java.util.function.ObjIntConsumer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * A state of the optimizer, of which each rank has a buffer for each of its shards. Moves it to and
 * from one rank, one bucket at a time, and shows it there by parameter.
 */
final class ShardedState {
  private final BucketSync sync;
  private final BucketSet set;
  private final List<? extends DeviceBuffer> state;
  private final int root;

  /**
   * @param state one buffer for each shard, with as many elements
   * @throws IllegalArgumentException if they are not
   */
  ShardedState(BucketSync sync, BucketSet set, List<? extends DeviceBuffer> state, int root) {
    this.sync = sync;
    this.set = set;
    this.state = Objects.requireNonNull(state, "state");
    this.root = root;
    for (int i = 0; i < Math.max(state.size(), set.buckets.length); i++) {
      long expected = i < set.buckets.length ? set.buckets[i].shard.own.weight().count() : -1;
      if (i >= state.size() || state.get(i).count() != expected) {
        throw new IllegalArgumentException(
            ("not a state of the shards: index=%s, is=%s, count=%s, rank=%s;"
                    + " give one buffer for each of shards(), with as many elements")
                .formatted(
                    i,
                    i < state.size() ? state.get(i) : "none",
                    expected < 0 ? "none" : String.valueOf(expected),
                    sync.rank()));
      }
    }
  }

  /** Collective. The root's consumer reads each parameter's state. */
  void gather(ObjIntConsumer<DeviceBuffer> values) {
    sync.awaitTurn(); // throws inside of a group, where nothing would be gathered yet
    for (int i = 0; i < set.buckets.length; i++) {
      boolean gathered = false;
      try (Whole whole = gathered(i)) {
        gathered = true;
        whole.show(values);
      } catch (Exception | Error e) { // a full disk perhaps, and a checked one of Kotlin's
        if (gathered) {
          gatherRest(i + 1, e);
        }
        throw e;
      }
    }
  }

  private Whole gathered(int index) {
    Whole whole = null;
    try {
      whole = new Whole(index);
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, () -> agree("gatherState has thrown: " + e));
      throw e;
    }
    try {
      agree("");
      sync.gather(state.get(index), whole.buffer, root);
      return whole;
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, whole);
      throw e;
    }
  }

  /** The other ranks do not know that the root's consumer has failed. */
  private void gatherRest(int first, Throwable failure) {
    try {
      for (int i = first; i < set.buckets.length; i++) {
        gathered(i).close();
      }
    } catch (RuntimeException | Error e) {
      failure.addSuppressed(e);
    }
  }

  /** Collective. The root's consumer writes each parameter's state. If it throws, all ranks do. */
  void scatter(ObjIntConsumer<DeviceBuffer> values) {
    sync.awaitTurn();
    for (int i = 0; i < set.buckets.length; i++) {
      try (Whole whole = filled(i, values)) {
        agree("");
        sync.scatter(whole.buffer, state.get(i), root);
      }
    }
  }

  private Whole filled(int index, ObjIntConsumer<DeviceBuffer> values) {
    Whole whole = null;
    try {
      whole = new Whole(index);
      whole.show(values);
      return whole;
    } catch (Exception | Error e) {
      Resources.closeAllAfter(e, () -> agree("scatterState has thrown: " + e), whole);
      throw e;
    }
  }

  private void agree(String failure) {
    Agreement.requireAll(sync.ownCommunicator(), failure);
  }

  /** The state of a whole bucket on the root, and nothing elsewhere. */
  private final class Whole implements AutoCloseable {
    final DeviceBuffer buffer; // or null
    private final Bucket bucket;

    Whole(int index) {
      bucket = set.buckets[index];
      BackendDevice device = sync.backend();
      DataType type = state.get(index).type();
      buffer =
          sync.rank() == root ? Unclosed.exempt(device.allocate(type, bucket.flat.count())) : null;
    }

    void show(ObjIntConsumer<DeviceBuffer> values) {
      if (buffer == null) {
        return;
      }
      for (int parameter : bucket.parameters) {
        long count = set.gradient(parameter).count();
        values.accept(buffer.slice(set.layout.offsetOf[parameter], count), parameter);
      }
    }

    @Override
    public void close() {
      if (buffer != null) {
        buffer.close();
      }
    }
  }
}
