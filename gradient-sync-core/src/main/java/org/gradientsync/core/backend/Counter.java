package org.gradientsync.core.backend;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.spi.Message;

/**
 * A number in memory that several processes have mapped, or several threads see. One rank sets it,
 * the others watch it. It only grows, so it is never reset. A rank that sees a value also sees
 * everything that was written before it.
 */
public final class Counter implements Message {
  /** The distance between counters: two cache lines, because processors prefetch pairs of lines. */
  public static final int LINE = 128;

  private static final VarHandle VALUE =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  private final ByteBuffer memory;
  private final int offset;
  private final Runnable alive;
  private long expected;

  /**
   * @param memory direct memory in native byte order
   * @param offset a multiple of 8
   */
  public Counter(ByteBuffer memory, int offset) {
    this(memory, offset, () -> {});
  }

  /**
   * @param memory direct memory in native byte order
   * @param offset a multiple of 8
   * @param alive throws if nobody will set the counter any more; called by each test that fails
   */
  public Counter(ByteBuffer memory, int offset, Runnable alive) {
    this.memory = memory;
    this.offset = offset;
    this.alive = alive;
  }

  /**
   * @param value not less than before
   */
  public void set(long value) {
    VALUE.setRelease(memory, offset, value);
  }

  /** {@return the current value: what was set last, or what the memory held before} */
  public long get() {
    return (long) VALUE.getAcquire(memory, offset);
  }

  /**
   * Sets the value for which {@link #test} waits.
   *
   * @param value the least value that ends the wait
   * @return this counter
   */
  public Counter expect(long value) {
    expected = value;
    return this;
  }

  @Override
  public boolean test() {
    if (get() >= expected) {
      return true;
    }
    alive.run();
    return false;
  }
}
