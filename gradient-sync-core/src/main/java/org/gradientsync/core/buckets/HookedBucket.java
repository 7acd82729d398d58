package org.gradientsync.core.buckets;

import java.util.List;
import org.gradientsync.BucketHook;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.GradientSync;
import org.gradientsync.Stream;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/** A bucket as the program's hook sees it, with the memory that the hook has allocated for it. */
final class HookedBucket implements BucketHook.FullBucket, AutoCloseable {
  private final BucketHooks hooks;
  private final int index;
  private final Origin origin;
  private final DeviceBuffer gradients;
  private final Stream communication;
  private final List<BucketHook.Part> parts;
  private final Runnable call;
  private final Resources resources = new Resources();

  /**
   * @param origin of the bucket's average
   * @param gradients the memory as a buffer of the communication stream
   */
  HookedBucket(
      BucketHooks hooks,
      int index,
      Origin origin,
      DeviceBuffer gradients,
      Stream communication,
      List<BucketHook.Part> parts) {
    this.hooks = hooks;
    this.index = index;
    this.origin = origin;
    this.gradients = gradients;
    this.communication = communication;
    this.parts = parts;
    call = () -> hooks.average(this, this.origin);
  }

  void average() {
    hooks.sync.runHook(call);
  }

  @Override
  public int index() {
    return index;
  }

  @Override
  public DeviceBuffer gradients() {
    return gradients;
  }

  @Override
  public List<BucketHook.Part> parts() {
    return parts;
  }

  @Override
  public GradientSync sync() {
    return hooks.own;
  }

  @Override
  public DeviceBuffer allocate(DataType type, long count) {
    BackendDevice device = hooks.sync.backend();
    DeviceBuffer memory = resources.add(Unclosed.exempt(device.allocate(type, count)));
    try (Event zeroed = device.createEvent(false)) { // the device's stream fills it with zeros
      zeroed.record(device.stream());
      communication.waitFor(zeroed);
    }
    return device.on(communication, memory);
  }

  @Override
  public void close() {
    Resources.closeAll(() -> hooks.release(this), resources);
  }
}
