package org.gradientsync.elastic;

import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.core.host.HostDevice;

/**
 * The training of one rank, in the parts that {@link ElasticTraining} calls. All are called by the
 * thread that calls {@link ElasticTraining#run}.
 *
 * <p>A step has two halves, so that no step is half done: {@link #compute} makes all calls that
 * need other ranks and may fail, and changes nothing of the {@link #state}; {@link #update} changes
 * it, and needs no other rank.
 */
public interface ElasticLoop {
  /**
   * Prepares for some ranks: builds {@link org.gradientsync.GradientBuckets}, and loads this rank's
   * share of the data. Called at the start, and after each change of the ranks. Collective.
   *
   * @param sync of the ranks that take part from now on; do not close it
   */
  void begin(GradientSync sync);

  /**
   * Computes a step's gradients and averages them. Repeated if a rank is lost in it.
   *
   * @param step from 0 on
   * @throws org.gradientsync.RankLostException if a rank is lost; let it pass
   */
  void compute(long step);

  /**
   * Updates the weights. Makes no calls of the sync.
   *
   * @param step as in {@link #compute}
   */
  void update(long step);

  /**
   * Releases what {@link #begin} has made, but not the state. The sync may be broken. Called after
   * a begin that has failed, too; what this method throws then does not end the training.
   */
  void end();

  /**
   * {@return what must be the same on all ranks after each step: weights, and the optimizer's
   * moments; in buffers of the sync's device, or {@linkplain #hostBuffer of the host}, of the same
   * types and counts on all ranks, before the first {@link #begin}, too} The buffers live on when
   * ranks are lost, because the device does.
   */
  List<? extends DeviceBuffer> state();

  /**
   * Allocates a part of the {@link #state} in host memory, whatever the sync's device is. Calls of
   * a sync do not take such a buffer.
   *
   * @param type the element type
   * @param count the number of elements, 0 or more
   * @return a buffer of zeros, which the caller closes
   * @throws IllegalArgumentException if the count is negative, or too large for a buffer
   * @throws org.gradientsync.GradientSyncException if there is not enough memory
   */
  static DeviceBuffer hostBuffer(DataType type, long count) {
    return new HostDevice().allocate(type, count);
  }

  /**
   * {@return what else must be the same, a few bytes, for example the state of a {@link
   * org.gradientsync.LossScaler}}
   */
  default byte[] save() {
    return new byte[0];
  }

  /**
   * Takes what another rank has saved.
   *
   * @param saved what {@link #save} has returned there
   */
  default void load(byte[] saved) {
    // nothing else
  }

  /**
   * Gathers in {@link #state} what lies on one rank only, such as the shards of an optimizer.
   * Called every {@link ElasticTraining.Builder#commitEvery} steps. Collective.
   */
  default void gather() {
    // the state is whole on each rank
  }

  /**
   * Takes over {@link #state}, which was restored, after {@link #begin}. Called on all ranks, only
   * if the training commits.
   */
  default void scatter() {
    // the state is what the training uses
  }
}
