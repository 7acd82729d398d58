package org.gradientsync.faults;

import java.nio.Buffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.gradientsync.DataType;
import org.gradientsync.Device;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.BufferDecorator;
import org.gradientsync.spi.Resources;

/**
 * A buffer around a buffer, whose copies and whose calls of a sync go wrong where a test has
 * planned it. Made by {@link Faults#wrap(org.gradientsync.GradientSync, DeviceBuffer)}.
 */
public final class FaultyBuffer implements BufferDecorator {
  private final DeviceBuffer buffer;
  private final RankCalls calls;
  private final List<DeviceBuffer> shorter = new ArrayList<>();

  FaultyBuffer(DeviceBuffer buffer, RankCalls calls) {
    this.buffer = buffer;
    this.calls = calls;
  }

  /**
   * The buffer itself, for what wants its class: kernels, say.
   *
   * @return what was wrapped
   */
  public DeviceBuffer wrapped() {
    return buffer;
  }

  @Override
  public void call(Consumer<DeviceBuffer> call) {
    switch (calls.call()) {
      case MAKE -> call.accept(buffer);
      case MISMATCH -> call.accept(oneLess());
      case DROP -> {
        // the others wait for this rank, or meet it in its next call
      }
    }
  }

  private DeviceBuffer oneLess() {
    if (buffer.count() == 0) {
      throw new IllegalStateException(
          "an empty buffer has no other count to ask for: buffer="
              + buffer
              + "; plan the mismatch at another call");
    }
    DeviceBuffer part = buffer.slice(0, buffer.count() - 1);
    shorter.add(part);
    return part;
  }

  @Override
  public DeviceBuffer named(String name) {
    buffer.named(name);
    return this;
  }

  @Override
  public String name() {
    return buffer.name();
  }

  @Override
  public DataType type() {
    return buffer.type();
  }

  @Override
  public long count() {
    return buffer.count();
  }

  @Override
  public Device device() {
    return buffer.device();
  }

  @Override
  public FaultyBuffer slice(long offset, long count) {
    return new FaultyBuffer(buffer.slice(offset, count), calls);
  }

  @Override
  public void fillZero() {
    buffer.fillZero();
  }

  @Override
  public void copyFrom(Buffer source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyTo(Buffer target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public void copyFrom(float[] source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyFrom(double[] source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyFrom(short[] source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyFrom(int[] source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyFrom(long[] source) {
    calls.copy();
    buffer.copyFrom(source);
  }

  @Override
  public void copyTo(float[] target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public void copyTo(double[] target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public void copyTo(short[] target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public void copyTo(int[] target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public void copyTo(long[] target) {
    calls.copy();
    buffer.copyTo(target);
  }

  @Override
  public boolean isClosed() {
    return buffer.isClosed();
  }

  /** Closes the buffer that was wrapped. */
  @Override
  public void close() {
    List<DeviceBuffer> all = new ArrayList<>(shorter);
    all.add(buffer);
    Resources.closeAll(all);
  }

  @Override
  public String toString() {
    return buffer.toString();
  }
}
