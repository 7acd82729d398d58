package org.gradientsync.core.buckets;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import org.gradientsync.BFloat16;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.Float16;
import org.gradientsync.ReduceOp;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * One element in the first bucket that a rank with data sets to 1. Its average is zero only if no
 * rank has data.
 */
public final class JoinFlag implements AutoCloseable {
  private final BackendDevice device;
  private final DeviceBuffer place;
  private final DeviceBuffer memory;
  private final DeviceBuffer[] one;

  /**
   * Creates the flag.
   *
   * @param place one element of a bucket, on the compute stream
   */
  JoinFlag(BackendDevice device, DeviceBuffer place, Stream compute) {
    this.device = device;
    this.place = place;
    memory = Unclosed.exempt(device.allocate(place.type(), 1));
    try {
      one = new DeviceBuffer[] {device.on(compute, memory)};
      begin(compute);
      raise(); // loads the kernel: in a step, a GPU may already be waiting for this rank
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, memory);
      throw e;
    }
  }

  private void begin(Stream compute) {
    try (Event zeroed = device.createEvent(false)) {
      zeroed.record(device.stream());
      compute.waitFor(zeroed);
    }
    Buffer number =
        switch (place.type()) {
          case FLOAT16 -> ShortBuffer.wrap(new short[] {Float16.fromFloat(1)});
          case BFLOAT16 -> ShortBuffer.wrap(new short[] {BFloat16.fromFloat(1)});
          case FLOAT32 -> FloatBuffer.wrap(new float[] {1});
          default -> DoubleBuffer.wrap(new double[] {1});
        };
    ((AbstractDeviceBuffer) one[0]).copyFromUnintercepted(number);
  }

  /** Sets the flag on the compute stream: this rank has data. */
  void raise() {
    device.reduce(one, place, ReduceOp.SUM);
  }

  /** Waits for the average and returns whether any rank had data. */
  boolean isRaised() {
    ByteBuffer average = ByteBuffer.allocate(place.type().sizeInBytes());
    ((AbstractDeviceBuffer) place).copyToUnintercepted(average);
    while (average.hasRemaining()) {
      if (average.get() != 0) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() {
    memory.close();
  }
}
