package org.gradientsync.test.contract;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.Float16;
import org.gradientsync.ReduceOp;

/**
 * Test data that differs by rank and index, and the expected results of reducing it. The results
 * are computed element by element from the definition in {@link ReduceOp}. Only the 16-bit
 * conversions, which have their own tests, are shared with the library.
 */
public final class Numbers {
  private static final float[] SPECIAL_FLOATS = {
    0f,
    -0f,
    Float.NaN,
    Float.POSITIVE_INFINITY,
    Float.NEGATIVE_INFINITY,
    Float.MIN_VALUE,
    -Float.MIN_VALUE,
    Float.MAX_VALUE,
    Float.MIN_NORMAL,
    65504f,
    6e-8f,
    Float.intBitsToFloat(0xffc12345)
  };

  private static final double[] SPECIAL_DOUBLES = {
    0,
    -0.0,
    Double.NaN,
    Double.POSITIVE_INFINITY,
    Double.NEGATIVE_INFINITY,
    Double.MIN_VALUE,
    Double.MAX_VALUE,
    -Double.MIN_NORMAL,
    Double.longBitsToDouble(0xfff8000000012345L)
  };

  private Numbers() {}

  /**
   * Returns the bits of one element in the low bytes of a long. Every eleventh element is a special
   * value. After 524,287 elements the same ones come again.
   *
   * @param type the element's type
   * @param rank the rank that has it
   * @param index its index
   * @return the bits
   */
  public static long bits(DataType type, int rank, long index) {
    int place = (int) (index % Elements.PERIOD);
    long hash = (place * 31L + rank + 1) * 0x9E3779B97F4A7C15L;
    hash ^= hash >>> 29;
    hash *= 0xBF58476D1CE4E5B9L;
    hash ^= hash >>> 32;
    boolean special = place % 11 == 7;
    return switch (type) {
      case FLOAT32 ->
          Float.floatToRawIntBits(special ? specialFloat(hash) : number(hash)) & 0xffffffffL;
      case FLOAT64 -> Double.doubleToRawLongBits(special ? specialDouble(hash) : exactNumber(hash));
      case FLOAT16 -> Float16.fromFloat(special ? specialFloat(hash) : number(hash)) & 0xffffL;
      case BFLOAT16 -> BFloat16.fromFloat(special ? specialFloat(hash) : number(hash)) & 0xffffL;
      case INT32 -> hash & 0xffffffffL;
      case INT64 -> hash;
    };
  }

  /**
   * Returns the bits of an element after a reduction.
   *
   * @param type the element's type
   * @param op the reduction
   * @param ranks the number of ranks
   * @param index its index
   * @return the bits
   */
  public static long reduced(DataType type, ReduceOp op, int ranks, long index) {
    switch (type) {
      case INT32:
      case INT64:
        long sum = bits(type, 0, index);
        for (int rank = 1; rank < ranks; rank++) {
          sum =
              type == DataType.INT32
                  ? reduce(op, (int) sum, (int) bits(type, rank, index)) & 0xffffffffL
                  : reduce(op, sum, bits(type, rank, index));
        }
        return sum;
      case FLOAT64:
        double total = Double.longBitsToDouble(bits(type, 0, index));
        for (int rank = 1; rank < ranks; rank++) {
          total = reduce(op, total, Double.longBitsToDouble(bits(type, rank, index)));
        }
        total = op == ReduceOp.AVERAGE ? total / ranks : total;
        return ranks == 1 ? bits(type, 0, index) : Double.doubleToLongBits(total);
      default:
        float value = toFloat(type, bits(type, 0, index));
        for (int rank = 1; rank < ranks; rank++) {
          value = reduce(op, value, toFloat(type, bits(type, rank, index)));
        }
        value = op == ReduceOp.AVERAGE ? value / ranks : value;
        return ranks == 1 ? bits(type, 0, index) : fromFloat(type, value);
    }
  }

  /**
   * Returns a rank's elements as raw memory.
   *
   * @param type the elements' type
   * @param rank the rank that has them
   * @param first the index of the first element
   * @param count how many elements
   * @return direct memory in native byte order
   */
  public static ByteBuffer of(DataType type, int rank, long first, int count) {
    return Elements.of(type, rank).copy(first, count);
  }

  /**
   * Returns the reduction of all ranks' elements as raw memory.
   *
   * @param type the elements' type
   * @param op the reduction
   * @param ranks the number of ranks
   * @param first the index of the first element
   * @param count how many elements
   * @return direct memory in native byte order
   */
  public static ByteBuffer reduced(DataType type, ReduceOp op, int ranks, long first, int count) {
    return Elements.reduced(type, op, ranks).copy(first, count);
  }

  /**
   * Returns the average of the given elements as raw memory.
   *
   * @param type a floating-point type
   * @param byRank each rank's elements, equally many
   * @return direct memory in native byte order
   */
  public static ByteBuffer average(DataType type, List<ByteBuffer> byRank) {
    int ranks = byRank.size();
    int count = byRank.get(0).capacity() / type.sizeInBytes();
    ByteBuffer memory = memory(type, count);
    for (int i = 0; i < count; i++) {
      if (ranks == 1) {
        put(memory, type, i, get(byRank.get(0), type, i));
      } else if (type == DataType.FLOAT64) {
        double total = byRank.get(0).getDouble(i * 8);
        for (int rank = 1; rank < ranks; rank++) {
          total += byRank.get(rank).getDouble(i * 8);
        }
        put(memory, type, i, Double.doubleToLongBits(total / ranks));
      } else {
        float total = toFloat(type, get(byRank.get(0), type, i));
        for (int rank = 1; rank < ranks; rank++) {
          total += toFloat(type, get(byRank.get(rank), type, i));
        }
        put(memory, type, i, fromFloat(type, total / ranks));
      }
    }
    return memory;
  }

  /**
   * Allocates memory for elements.
   *
   * @param type the elements' type
   * @param count how many elements
   * @return direct memory in native byte order
   */
  public static ByteBuffer memory(DataType type, int count) {
    return ByteBuffer.allocateDirect(count * type.sizeInBytes()).order(ByteOrder.nativeOrder());
  }

  /**
   * Views raw memory as a buffer of the type's own class.
   *
   * @param type the elements' type
   * @param memory the memory
   * @return a view
   */
  public static Buffer typed(DataType type, ByteBuffer memory) {
    return switch (type) {
      case FLOAT16, BFLOAT16 -> memory.asShortBuffer();
      case FLOAT32 -> memory.asFloatBuffer();
      case FLOAT64 -> memory.asDoubleBuffer();
      case INT32 -> memory.asIntBuffer();
      case INT64 -> memory.asLongBuffer();
    };
  }

  static void put(ByteBuffer memory, DataType type, int index, long bits) {
    switch (type.sizeInBytes()) {
      case 2 -> memory.putShort(index * 2, (short) bits);
      case 4 -> memory.putInt(index * 4, (int) bits);
      default -> memory.putLong(index * 8, bits);
    }
  }

  static long get(ByteBuffer memory, DataType type, int index) {
    return switch (type.sizeInBytes()) {
      case 2 -> memory.getShort(index * 2);
      case 4 -> memory.getInt(index * 4);
      default -> memory.getLong(index * 8);
    };
  }

  private static float number(long hash) {
    return (int) (hash >>> 20) / (float) (1 << 28);
  }

  private static double exactNumber(long hash) {
    return hash / 0x1p60;
  }

  private static float specialFloat(long hash) {
    return SPECIAL_FLOATS[(int) Long.remainderUnsigned(hash, SPECIAL_FLOATS.length)];
  }

  private static double specialDouble(long hash) {
    return SPECIAL_DOUBLES[(int) Long.remainderUnsigned(hash, SPECIAL_DOUBLES.length)];
  }

  private static float toFloat(DataType type, long bits) {
    return switch (type) {
      case FLOAT16 -> Float16.toFloat((short) bits);
      case BFLOAT16 -> BFloat16.toFloat((short) bits);
      default -> Float.intBitsToFloat((int) bits);
    };
  }

  private static long fromFloat(DataType type, float value) {
    return switch (type) {
      case FLOAT16 -> Float16.fromFloat(value) & 0xffffL;
      case BFLOAT16 -> BFloat16.fromFloat(value) & 0xffffL;
      default -> Float.floatToIntBits(value) & 0xffffffffL;
    };
  }

  private static float reduce(ReduceOp op, float a, float b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }

  private static double reduce(ReduceOp op, double a, double b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }

  private static int reduce(ReduceOp op, int a, int b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }

  private static long reduce(ReduceOp op, long a, long b) {
    return switch (op) {
      case SUM, AVERAGE -> a + b;
      case MIN -> Math.min(a, b);
      case MAX -> Math.max(a, b);
      case PROD -> a * b;
    };
  }
}
