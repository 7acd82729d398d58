package org.gradientsync.core.buckets;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.IntPredicate;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Event;
import org.gradientsync.Float16;
import org.gradientsync.Stream;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Unclosed;

/**
 * What the ranks tell each other with the averages of a step. Each flag is an element at the end of
 * the last bucket, 1 or 0 on each rank; its average times the number of ranks is how many have set
 * it. All flags are known when the average of that bucket starts.
 */
public final class StepFlags implements AutoCloseable {
  /** The number of flags that do not belong to a parameter. */
  static final int FIXED = 2;

  private static final int STOP = 0;
  private static final int DATA = 1;

  private final BackendDevice device;
  private final DeviceBuffer place;
  private final DeviceBuffer stop; // parts of it
  private final DeviceBuffer data;
  private final DeviceBuffer parameters;
  private final DeviceBuffer memory;
  private final DeviceBuffer one;
  private final DeviceBuffer ones; // as many as parameters
  private final int ranks;
  private final long[] counts; // of the ranks that have set each flag
  private boolean read; // whether they are those of the last step

  /**
   * Creates the flags.
   *
   * @param place the elements, on the compute stream
   */
  StepFlags(BackendDevice device, DeviceBuffer place, Stream compute, int ranks) {
    this.device = device;
    this.place = place;
    this.ranks = ranks;
    counts = new long[Math.toIntExact(place.count())];
    int own = counts.length - FIXED;
    stop = place.slice(STOP, 1);
    data = place.slice(DATA, 1);
    parameters = place.slice(FIXED, own);
    memory = Unclosed.exempt(device.allocate(place.type(), own + 1L));
    try {
      DeviceBuffer all = device.on(compute, memory);
      one = all.slice(own, 1);
      ones = all.slice(0, own);
      try (Event zeroed = device.createEvent(false)) {
        zeroed.record(device.stream());
        compute.waitFor(zeroed);
      }
      ((AbstractDeviceBuffer) all).copyFromUnintercepted(ones(place.type(), own + 1));
      // Loads the kernels: in a step, a GPU may already be waiting for this rank.
      device.copy(one, stop);
      place.fillZero();
    } catch (RuntimeException | Error e) {
      Resources.closeAllAfter(e, memory);
      throw e;
    }
  }

  private static ByteBuffer bytes(DataType type, int count) {
    return ByteBuffer.allocate(count * type.sizeInBytes()).order(ByteOrder.nativeOrder());
  }

  private static ByteBuffer ones(DataType type, int count) {
    ByteBuffer ones = bytes(type, count);
    for (int i = 0; i < count; i++) {
      switch (type) {
        case FLOAT16 -> ones.putShort(Float16.fromFloat(1));
        case BFLOAT16 -> ones.putShort(BFloat16.fromFloat(1));
        case FLOAT32 -> ones.putFloat(1);
        default -> ones.putDouble(1);
      }
    }
    return ones.flip();
  }

  /** Sets the flag on the compute stream, before the average: the program has asked to stop. */
  void setStop() {
    device.copy(one, stop);
  }

  /**
   * Sets a flag on the compute stream, before the average.
   *
   * @param has whether the step is this rank's own
   */
  void setData(boolean has) {
    set(one, data, has);
  }

  /**
   * Sets the flags of all parameters on the compute stream, before the average.
   *
   * @param has whether this rank has a gradient of a parameter
   */
  void setParameters(IntPredicate has) {
    int count = counts.length - FIXED;
    for (int first = 0; first < count; ) {
      boolean value = has.test(first);
      int end = first + 1;
      while (end < count && has.test(end) == value) {
        end++;
      }
      if (first == 0 && end == count) { // as in most steps
        set(ones, parameters, value);
      } else {
        set(ones.slice(first, end - first), parameters.slice(first, end - first), value);
      }
      first = end;
    }
  }

  private void set(DeviceBuffer source, DeviceBuffer target, boolean value) {
    if (value) {
      device.copy(source, target);
    } else {
      target.fillZero();
    }
  }

  /** Forgets what was read in the last step. */
  void beginStep() {
    read = false;
  }

  /** Whether any rank was to stop. Waits for the averages, as the others do. */
  boolean isStopRequested() {
    return count(STOP) > 0;
  }

  /** The number of ranks whose own step it was. */
  long withData() {
    return count(DATA);
  }

  /** The number of ranks that had a gradient of a parameter. */
  long withParameter(int parameter) {
    return count(FIXED + parameter);
  }

  private long count(int flag) {
    if (!read) {
      read();
    }
    return counts[flag];
  }

  private void read() {
    DataType type = place.type();
    ByteBuffer averages = bytes(type, counts.length);
    ((AbstractDeviceBuffer) place).copyToUnintercepted(averages);
    averages.rewind();
    for (int i = 0; i < counts.length; i++) {
      double average =
          switch (type) {
            case FLOAT16 -> Float16.toFloat(averages.getShort());
            case BFLOAT16 -> BFloat16.toFloat(averages.getShort());
            case FLOAT32 -> averages.getFloat();
            default -> averages.getDouble();
          };
      counts[i] = Math.round(average * ranks);
    }
    read = true;
  }

  @Override
  public void close() {
    memory.close();
  }
}
