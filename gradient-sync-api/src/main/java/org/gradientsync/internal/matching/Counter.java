package org.gradientsync.internal.matching;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.spi.Message;

/**
 * A number in memory that several processes have mapped, set by one rank and watched by the others.
 * It only grows, so it is never reset. What its rank wrote before setting it is seen by whoever
 * sees the number.
 */
public final class Counter implements Message {
  /**
   * How far apart counters are to lie: two cache lines, because processors fetch neighbours
   * together.
   */
  public static final int LINE = 128;

  private static final VarHandle VALUE =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

  private final ByteBuffer memory;
  private final int offset;
  private long expected;

  /**
   * A counter.
   *
   * @param memory direct memory in native byte order
   * @param offset where it lies, a multiple of 8
   */
  public Counter(ByteBuffer memory, int offset) {
    this.memory = memory;
    this.offset = offset;
  }

  /**
   * Sets it.
   *
   * @param value not less than before
   */
  public void set(long value) {
    VALUE.setRelease(memory, offset, value);
  }

  /**
   * What {@link #test} waits for from now on.
   *
   * @param value the number that it is to reach
   * @return this counter
   */
  public Counter expect(long value) {
    expected = value;
    return this;
  }

  @Override
  public void start() {
    // it is the rank that sets it who starts it
  }

  @Override
  public boolean test() {
    return (long) VALUE.getAcquire(memory, offset) >= expected;
  }

  @Override
  public void close() {
    // the mapping goes with the last reference to it
  }
}
