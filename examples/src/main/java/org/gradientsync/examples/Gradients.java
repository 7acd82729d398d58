package org.gradientsync.examples;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.Float16;

/**
 * Gradients whose average is known: element i of a rank is rank + i / 1000, rounded to the type.
 *
 * <p>The average is worked out here a second time, by the arithmetic that the library promises and
 * none of its code, so that every element can be compared bit by bit. Elements are handled as their
 * raw bits in a long, which makes one comparison serve all types.
 *
 * <p>Buffers are filled and read in chunks: they may be larger than a Java array can be.
 */
final class Gradients {
  private static final int CHUNK = 1 << 16;

  private final DataType type;
  private final int ranks;
  private final ByteBuffer chunk;

  /**
   * Gradients of one rank; not safe for use by several threads.
   *
   * @param type a floating-point type
   * @param ranks how many ranks are averaged
   */
  Gradients(DataType type, int ranks) {
    this.type = type;
    this.ranks = ranks;
    this.chunk =
        ByteBuffer.allocateDirect(CHUNK * type.sizeInBytes()).order(ByteOrder.nativeOrder());
  }

  /** What a check found in one buffer. */
  record Check(long wrong, long firstWrong, double averaged, double expected) {
    static final Check NOTHING_WRONG = new Check(0, -1, 0, 0);

    boolean passed() {
      return wrong == 0;
    }
  }

  /**
   * Computes a rank's gradient. This is the part that a GPU would do.
   *
   * @param buffer where it goes
   * @param rank whose it is
   */
  void compute(DeviceBuffer buffer, int rank) {
    for (long first = 0; first < buffer.count(); first += CHUNK) {
      int count = (int) Math.min(CHUNK, buffer.count() - first);
      for (int i = 0; i < count; i++) {
        put(i, gradient(rank, first + i));
      }
      chunk.limit(count * type.sizeInBytes());
      try (DeviceBuffer part = buffer.slice(first, count)) {
        part.copyFrom(chunk);
      }
    }
  }

  /**
   * Compares every element with the average.
   *
   * @param buffer the averaged gradient
   * @return how many elements have other bits, and the first of them
   */
  Check check(DeviceBuffer buffer) {
    Check found = Check.NOTHING_WRONG;
    for (long first = 0; first < buffer.count(); first += CHUNK) {
      int count = (int) Math.min(CHUNK, buffer.count() - first);
      download(buffer, first, count);
      for (int i = 0; i < count; i++) {
        long averaged = get(i);
        long expected = average(first + i);
        if (averaged != expected) {
          found =
              found.passed()
                  ? new Check(1, first + i, value(averaged), value(expected))
                  : new Check(found.wrong + 1, found.firstWrong, found.averaged, found.expected);
        }
      }
    }
    return found;
  }

  /** One element of a buffer, as a number. */
  double read(DeviceBuffer buffer, long index) {
    download(buffer, index, 1);
    return value(get(0));
  }

  /** What an element is after averaging, as a number. */
  double expected(long index) {
    return value(average(index));
  }

  /** The bits of one rank's element. */
  long gradient(int rank, long index) {
    return round(rank + index / 1000.0);
  }

  /** The bits of the average: summed in rank order in the accumulator type, rounded once. */
  long average(long index) {
    return type == DataType.FLOAT64 ? averageInDouble(index) : averageInFloat(index);
  }

  private long averageInDouble(long index) {
    double sum = value(gradient(0, index));
    for (int rank = 1; rank < ranks; rank++) {
      sum += value(gradient(rank, index));
    }
    return round(sum / ranks);
  }

  private long averageInFloat(long index) {
    float sum = (float) value(gradient(0, index)); // exact: no type here is wider than a float
    for (int rank = 1; rank < ranks; rank++) {
      sum += (float) value(gradient(rank, index));
    }
    return round(sum / ranks);
  }

  private void download(DeviceBuffer buffer, long first, int count) {
    chunk.limit(count * type.sizeInBytes());
    try (DeviceBuffer part = buffer.slice(first, count)) {
      part.copyTo(chunk);
    }
  }

  /** To the type's bits; a value that comes from a float is rounded once only. */
  private long round(double value) {
    return switch (type) {
      case FLOAT16 -> Float16.fromFloat((float) value) & 0xffffL;
      case BFLOAT16 -> BFloat16.fromFloat((float) value) & 0xffffL;
      case FLOAT32 -> Float.floatToRawIntBits((float) value) & 0xffffffffL;
      case FLOAT64 -> Double.doubleToRawLongBits(value);
      case INT32, INT64 -> throw new IllegalArgumentException("not floating-point: " + type);
    };
  }

  private double value(long bits) {
    return switch (type) {
      case FLOAT16 -> Float16.toFloat((short) bits);
      case BFLOAT16 -> BFloat16.toFloat((short) bits);
      case FLOAT32 -> Float.intBitsToFloat((int) bits);
      case FLOAT64 -> Double.longBitsToDouble(bits);
      case INT32, INT64 -> throw new IllegalArgumentException("not floating-point: " + type);
    };
  }

  private void put(int index, long bits) {
    int offset = index * type.sizeInBytes();
    chunk.limit(chunk.capacity());
    switch (type.sizeInBytes()) {
      case 2 -> chunk.putShort(offset, (short) bits);
      case 4 -> chunk.putInt(offset, (int) bits);
      default -> chunk.putLong(offset, bits);
    }
  }

  private long get(int index) {
    int offset = index * type.sizeInBytes();
    return switch (type.sizeInBytes()) {
      case 2 -> chunk.getShort(offset) & 0xffffL;
      case 4 -> chunk.getInt(offset) & 0xffffffffL;
      default -> chunk.getLong(offset);
    };
  }
}
