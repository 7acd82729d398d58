package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests what the buffers of every device promise. */
public abstract class DeviceBufferContract {
  private BackendDevice device;

  /** {@return a new device to test, which the test closes} */
  protected abstract BackendDevice openDevice();

  @BeforeEach
  void open() {
    device = openDevice();
  }

  @AfterEach
  void close() {
    device.close();
  }

  @ParameterizedTest
  @EnumSource
  void reportsTypeCountAndDevice(DataType type) {
    try (DeviceBuffer buffer = device.allocate(type, 1001)) {
      assertEquals(type, buffer.type());
      assertEquals(1001, buffer.count());
      assertEquals(1001L * type.sizeInBytes(), buffer.sizeInBytes());
      assertSame(device, buffer.device());
      assertTrue(buffer.toString().contains(type + "[1001]"), buffer.toString());
    }
  }

  @Test
  void hostMemoryAccessesElementsInPlace() {
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 7)) {
      buffer.copyFrom(new float[] {0, 1, 2, 3, 4, 5, 6});
      DeviceBuffer view = buffer.slice(3, 2);
      if (device.kind().equals("host")) {
        view.hostMemory().putFloat(4, 9);
        float[] elements = new float[7];
        buffer.copyTo(elements);
        assertArrayEquals(new float[] {0, 1, 2, 3, 9, 5, 6}, elements);
      } else {
        assertThrows(UnsupportedOperationException.class, view::hostMemory);
      }
    }
  }

  @Test
  void elementsAreViewsOfHostMemory() {
    try (DeviceBuffer floats = device.allocate(DataType.FLOAT32, 7);
        DeviceBuffer doubles = device.allocate(DataType.FLOAT64, 2);
        DeviceBuffer halves = device.allocate(DataType.FLOAT16, 2);
        DeviceBuffer brains = device.allocate(DataType.BFLOAT16, 2);
        DeviceBuffer ints = device.allocate(DataType.INT32, 2);
        DeviceBuffer longs = device.allocate(DataType.INT64, 2)) {
      if (!device.kind().equals("host")) {
        UnsupportedOperationException e =
            assertThrows(UnsupportedOperationException.class, floats::floats);
        assertTrue(e.getMessage().contains("use copyTo and copyFrom"), e.getMessage());
        return;
      }
      floats.slice(3, 2).floats().put(1, 1.5f);
      doubles.doubles().put(1, 2.5);
      halves.shorts().put(1, (short) 3);
      brains.shorts().put(1, (short) 4);
      ints.ints().put(1, 5);
      longs.longs().put(1, 6);
      assertEquals(2, floats.slice(3, 2).floats().remaining());
      assertEquals(1.5f, download(floats).getFloat(4 * Float.BYTES));
      assertEquals(2.5, download(doubles).getDouble(Double.BYTES));
      assertEquals(3, download(halves).getShort(Short.BYTES));
      assertEquals(4, download(brains).getShort(Short.BYTES));
      assertEquals(5, download(ints).getInt(Integer.BYTES));
      assertEquals(6, download(longs).getLong(Long.BYTES));
      UnsupportedOperationException e =
          assertThrows(UnsupportedOperationException.class, doubles::floats);
      assertTrue(
          e.getMessage().contains("view=floats, buffer=host FLOAT64[2]; use doubles()"),
          e.getMessage());
    }
  }

  @ParameterizedTest
  @EnumSource
  void startsWithZeros(DataType type) {
    try (DeviceBuffer buffer = device.allocate(type, 37)) {
      ByteBuffer target = Numbers.of(type, 0, 0, 37);
      buffer.copyTo(target);
      assertEquals(Numbers.memory(type, 37), target);
    }
  }

  @ParameterizedTest
  @EnumSource
  void keepsBitsOfTypedBuffers(DataType type) {
    for (int count : new int[] {0, 1, 3, 1000, 70_001}) {
      try (DeviceBuffer buffer = device.allocate(type, count)) {
        ByteBuffer source = Numbers.of(type, 3, 0, count);
        ByteBuffer target = Numbers.memory(type, count);
        buffer.copyFrom(Numbers.typed(type, source));
        buffer.copyTo(Numbers.typed(type, target));
        assertEquals(source, target);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void copiesBytesAndKeepsPositions(DataType type) {
    try (DeviceBuffer buffer = device.allocate(type, 5)) {
      ByteBuffer source = Numbers.of(type, 1, 0, 9);
      int size = type.sizeInBytes();
      source.position(3 * size).limit(8 * size);
      buffer.copyFrom(source);
      assertEquals(3 * size, source.position());
      ByteBuffer target = Numbers.memory(type, 9);
      target.position(size).limit(6 * size);
      buffer.copyTo(target);
      assertEquals(size, target.position());
      assertEquals(source, target);
    }
  }

  @Test
  void copiesPartsOfTypedBuffers() {
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 2)) {
      FloatBuffer source = FloatBuffer.wrap(new float[] {1, 2, 3, 4}, 1, 2);
      buffer.copyFrom(source);
      assertEquals(1, source.position());
      float[] result = new float[5];
      buffer.copyTo(FloatBuffer.wrap(result, 2, 2));
      assertArrayEquals(new float[] {0, 0, 2, 3, 0}, result);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void addsSquaresInAFixedOrder(DataType type) {
    for (int count : new int[] {0, 1, 511, 9_001}) {
      double[] values = new double[count];
      for (int i = 0; i < count; i++) {
        values[i] = (i * 7919L % 1009 - 504) / 64.0; // exact in all types but BFLOAT16
      }
      double bits = Double.NaN;
      for (int offset : new int[] {0, 1, 3}) {
        try (DeviceBuffer whole = device.allocate(type, count + 4);
            DeviceBuffer buffer = whole.slice(offset, count)) {
          Doubles.fill(whole, Double.NaN); // what must not be read
          Doubles.write(buffer, values);
          double expected = Arrays.stream(Doubles.read(buffer)).map(v -> v * v).sum();
          double sum = device.sumOfSquares(buffer);
          assertEquals(expected, sum, 1e-12 * expected, type + ", count=" + count);
          bits = offset == 0 ? sum : bits;
          assertEquals(bits, sum, "other bits at another address");
          assertEquals(sum, device.sumOfSquares(buffer));
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void squaresAreNotFiniteIfAnElementIsNot(DataType type) {
    try (DeviceBuffer buffer = device.allocate(type, 10_000)) {
      for (int index : new int[] {0, 7_777, 9_999}) {
        for (double odd : new double[] {Double.NEGATIVE_INFINITY, Double.NaN}) {
          double[] values = new double[10_000];
          values[index] = odd;
          Doubles.write(buffer, values);
          assertEquals(odd * odd, device.sumOfSquares(buffer));
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void scalesInDoubleAndRounds(DataType type) {
    int count = 9_001;
    try (DeviceBuffer whole = device.allocate(type, count + 2);
        DeviceBuffer buffer = whole.slice(1, count);
        DeviceBuffer rounded = device.allocate(type, count)) {
      double[] values = new double[count];
      for (int i = 0; i < count; i++) {
        values[i] = (i % 301 - 150) * Math.pow(2, i % 23 - 14);
      }
      Doubles.fill(whole, 5);
      Doubles.write(buffer, values);
      double factor = 1 / 3.0;
      double[] expected =
          Arrays.stream(Doubles.read(buffer)).map(value -> value * factor).toArray();
      device.scale(buffer, factor);
      Doubles.write(rounded, expected);
      assertArrayEquals(Doubles.read(rounded), Doubles.read(buffer));
      double[] all = Doubles.read(whole);
      assertEquals(5, all[0]);
      assertEquals(5, all[count + 1]);
    }
  }

  /** Of small integers and powers of two, so that every order of additions gives the same bits. */
  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT64"})
  void multipliesMatricesOfRows(DataType type) {
    int[][] sizes = {
      {1, 1, 1}, {2, 3, 5}, {33, 17, 4}, {3, 0, 4}, {0, 3, 2}, {3, 2, 0}, {301, 300, 3}, {2, 3, 301}
    };
    for (int[] size : sizes) {
      for (int form = 0; form < 4; form++) {
        for (double[] factors : new double[][] {{1, 0}, {-0.5, 1}, {2, 0.25}, {0, -1}}) {
          multiply(type, size, form % 2 == 1, form / 2 == 1, factors[0], factors[1]);
        }
      }
    }
  }

  private void multiply(
      DataType type, int[] size, boolean turnA, boolean turnB, double alpha, double beta) {
    int rows = size[0];
    int inner = size[1];
    int columns = size[2];
    double[] a = integers(rows * inner, 1);
    double[] b = integers(inner * columns, 2);
    double[] c = integers(rows * columns, 3);
    double[] expected = new double[c.length];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        double sum = 0;
        for (int k = 0; k < inner; k++) {
          sum +=
              a[turnA ? k * rows + i : i * inner + k] * b[turnB ? j * inner + k : k * columns + j];
        }
        expected[i * columns + j] = alpha * sum + beta * c[i * columns + j];
      }
    }
    if (beta == 0) {
      Arrays.fill(c, Double.NaN); // overwritten, whatever it contains
    }
    try (DeviceBuffer left = device.allocate(type, a.length + 2);
        DeviceBuffer right = device.allocate(type, b.length + 2);
        DeviceBuffer result = device.allocate(type, c.length + 2)) {
      Doubles.write(left.slice(1, a.length), a);
      Doubles.write(right.slice(1, b.length), b);
      Doubles.write(result.slice(1, c.length), c);
      device.multiply(
          alpha,
          left.slice(1, a.length),
          turnA,
          right.slice(1, b.length),
          turnB,
          beta,
          result.slice(1, c.length),
          rows,
          inner,
          columns);
      double[] all = Doubles.read(result);
      assertArrayEquals(expected, Arrays.copyOfRange(all, 1, c.length + 1), 0); // or -0
      assertEquals(0, all[0]);
      assertEquals(0, all[c.length + 1]);
    }
  }

  private static double[] integers(int count, int seed) {
    double[] values = new double[count];
    Arrays.setAll(values, i -> (i * 7 + seed * 5) % 13 - 6);
    return values;
  }

  @ParameterizedTest
  @EnumSource(names = {"FLOAT32", "FLOAT64"})
  void addsMultiples(DataType type) {
    for (int count : new int[] {0, 1, 1001, 70_001}) { // the last one of several pieces
      double[] x = integers(count, 1);
      double[] y = integers(count, 2);
      double[] expected = new double[count];
      Arrays.setAll(expected, i -> y[i] - 0.5 * x[i]);
      try (DeviceBuffer added = device.allocate(type, count);
          DeviceBuffer sum = device.allocate(type, count + 1)) {
        Doubles.write(added, x);
        Doubles.write(sum.slice(1, count), y);
        device.addScaled(-0.5, added, sum.slice(1, count));
        double[] all = Doubles.read(sum);
        assertArrayEquals(expected, Arrays.copyOfRange(all, 1, count + 1));
        assertEquals(0, all[0]);
      }
    }
  }

  @Test
  void refusesMatricesThatDoNotFit() {
    try (DeviceBuffer four = device.allocate(DataType.FLOAT32, 4);
        DeviceBuffer six = device.allocate(DataType.FLOAT32, 6);
        DeviceBuffer out = device.allocate(DataType.FLOAT32, 4);
        DeviceBuffer doubles = device.allocate(DataType.FLOAT64, 4);
        DeviceBuffer halves = device.allocate(DataType.BFLOAT16, 4)) {
      assertMultiplyRefused(six, four, out, 2, "a=");
      assertMultiplyRefused(four, doubles, out, 2, "b=");
      assertMultiplyRefused(four, four, six, 2, "c=");
      assertMultiplyRefused(halves, halves, halves, 2, "neither FLOAT32 nor FLOAT64: a=");
      assertMultiplyRefused(four, four, out, -2, "size is negative: rows=-2");
      assertRefused(() -> device.addScaled(1, four, six), "x=");
      assertRefused(() -> device.addScaled(1, doubles, four), "x=");
      assertRefused(() -> device.addScaled(1, halves, halves), "x=");
    }
    assertEquals(1, productsOf().lines().count());
  }

  /** Some rows of none, some of several; as many elements as a device may take in pieces. */
  @ParameterizedTest
  @CsvSource({"1, 1", "3, 5", "1000, 3", "9000, 8", "3, 20000"})
  void addsUpRowsInTheTablesOrder(int rows, int width) {
    Random random = new Random(rows);
    int[][] numbers = new int[rows][];
    int sources = 0;
    for (int row = 0; row < rows; row++) {
      numbers[row] = new int[Math.max(0, random.nextInt(6) - 2)];
      sources += numbers[row].length;
    }
    int[] table = new int[sources + rows + 1];
    float[] values = new float[sources * width];
    float[] expected = new float[rows * width];
    for (int i = 0; i < values.length; i++) {
      values[i] = i % 5 == 0 ? -0f : (float) random.nextGaussian();
    }
    int at = 0;
    for (int row = 0; row < rows; row++) {
      table[sources + row] = at;
      for (int i = 0; i < numbers[row].length; i++, at++) {
        table[at] = sources - 1 - at; // the last row first
        for (int k = 0; k < width; k++) {
          expected[row * width + k] += values[table[at] * width + k];
        }
      }
    }
    table[sources + rows] = at;
    try (DeviceBuffer from = device.allocate(DataType.FLOAT32, values.length + 1);
        DeviceBuffer order = device.allocate(DataType.INT32, table.length);
        DeviceBuffer sums = device.allocate(DataType.FLOAT32, expected.length + 2)) {
      Doubles.fill(sums, 7);
      from.slice(1, values.length).copyFrom(values);
      order.copyFrom(table);
      device.sumRows(from.slice(1, values.length), order, width, sums.slice(1, expected.length));
      float[] found = new float[expected.length + 2];
      sums.copyTo(found);
      for (int i = 0; i < expected.length; i++) {
        assertEquals(Float.floatToRawIntBits(expected[i]), Float.floatToRawIntBits(found[i + 1]));
      }
      assertEquals(7, found[0]);
      assertEquals(7, found[expected.length + 1]);
    }
  }

  @Test
  void refusesRowsThatDoNotFit() {
    try (DeviceBuffer six = device.allocate(DataType.FLOAT32, 6);
        DeviceBuffer four = device.allocate(DataType.FLOAT32, 4);
        DeviceBuffer table = device.allocate(DataType.INT32, 6)) {
      device.sumRows(six, table, 2, four); // 3 rows, 2 sums
      assertRefused(() -> device.sumRows(six, table, 3, four), "width=3");
      assertRefused(() -> device.sumRows(six, table, 0, four), "width=0");
      assertRefused(() -> device.sumRows(six, table, 1, four), "width=1");
      assertRefused(() -> device.sumRows(six, six, 2, four), "table=");
      assertRefused(() -> device.sumRows(table, table, 2, four), "source=");
      assertRefused(() -> device.sumRows(six, table, 2, table), "target=");
    }
  }

  private void assertMultiplyRefused(
      DeviceBuffer a, DeviceBuffer b, DeviceBuffer c, int size, String part) {
    assertRefused(() -> device.multiply(1, a, false, b, false, 0, c, size, size, size), part);
  }

  private String productsOf() {
    try (DeviceBuffer any = device.allocate(DataType.FLOAT32, 1)) {
      return device.products(any);
    }
  }

  @Test
  void integersHaveNoNorm() {
    try (DeviceBuffer buffer = device.allocate(DataType.INT32, 3)) {
      assertThrows(IllegalArgumentException.class, () -> device.sumOfSquares(buffer));
      assertThrows(IllegalArgumentException.class, () -> device.scale(buffer, 2));
    }
  }

  @Test
  void copiesArrays() {
    try (DeviceBuffer floats = device.allocate(DataType.FLOAT32, 3);
        DeviceBuffer doubles = device.allocate(DataType.FLOAT64, 3);
        DeviceBuffer halves = device.allocate(DataType.FLOAT16, 3);
        DeviceBuffer brains = device.allocate(DataType.BFLOAT16, 3);
        DeviceBuffer ints = device.allocate(DataType.INT32, 3);
        DeviceBuffer longs = device.allocate(DataType.INT64, 3)) {
      floats.copyFrom(new float[] {1, 2, 3});
      doubles.copyFrom(new double[] {4, 5, 6});
      halves.copyFrom(new short[] {7, 8, 9});
      brains.copyFrom(new short[] {10, 11, 12});
      ints.copyFrom(new int[] {13, 14, 15});
      longs.copyFrom(new long[] {16, 17, 18});
      float[] f = new float[3];
      double[] d = new double[3];
      short[] h = new short[3];
      short[] b = new short[3];
      int[] i = new int[3];
      long[] l = new long[3];
      floats.copyTo(f);
      doubles.copyTo(d);
      halves.copyTo(h);
      brains.copyTo(b);
      ints.copyTo(i);
      longs.copyTo(l);
      assertArrayEquals(new float[] {1, 2, 3}, f);
      assertArrayEquals(new double[] {4, 5, 6}, d);
      assertArrayEquals(new short[] {7, 8, 9}, h);
      assertArrayEquals(new short[] {10, 11, 12}, b);
      assertArrayEquals(new int[] {13, 14, 15}, i);
      assertArrayEquals(new long[] {16, 17, 18}, l);
    }
  }

  @ParameterizedTest
  @EnumSource
  void slicesAreViews(DataType type) {
    try (DeviceBuffer whole = device.allocate(type, 100)) {
      whole.copyFrom(Numbers.of(type, 0, 0, 100));
      DeviceBuffer odd = whole.slice(7, 51);
      assertEquals(51, odd.count());
      assertEquals(Numbers.of(type, 0, 7, 51), download(odd));
      DeviceBuffer inner = odd.slice(3, 5);
      inner.copyFrom(Numbers.of(type, 1, 0, 5));
      ByteBuffer expected = Numbers.of(type, 0, 0, 100);
      expected.put(10 * type.sizeInBytes(), Numbers.of(type, 1, 0, 5), 0, 5 * type.sizeInBytes());
      assertEquals(expected, download(whole));
      assertEquals(0, whole.slice(100, 0).count());
    }
  }

  @Test
  void rejectsSlicesOutOfRange() {
    try (DeviceBuffer buffer = device.allocate(DataType.INT32, 10)) {
      for (long[] range :
          new long[][] {{-1, 2}, {0, 11}, {9, 2}, {11, 0}, {3, -1}, {1, Long.MAX_VALUE}}) {
        IndexOutOfBoundsException e =
            assertThrows(IndexOutOfBoundsException.class, () -> buffer.slice(range[0], range[1]));
        assertTrue(e.getMessage().contains("offset=" + range[0]), e.getMessage());
      }
      DeviceBuffer slice = buffer.slice(2, 3);
      assertThrows(IndexOutOfBoundsException.class, () -> slice.slice(0, 4));
    }
  }

  @Test
  void rejectsWrongTypesAndLengths() {
    try (DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 4)) {
      buffer.copyFrom(new float[] {1, 2, 3, 4});
      assertRefused(() -> buffer.copyFrom(new double[4]), "double");
      assertRefused(() -> buffer.copyFrom(new int[4]), "int");
      assertRefused(() -> buffer.copyFrom(new short[4]), "short");
      assertRefused(() -> buffer.copyFrom(new long[4]), "long");
      assertRefused(() -> buffer.copyFrom(CharBuffer.wrap("abcd")), "not supported: length=4;");
      assertRefused(() -> buffer.copyTo(IntBuffer.allocate(4)), "int");
      assertRefused(() -> buffer.copyFrom(new float[3]), "source=3, expected=4");
      assertRefused(() -> buffer.copyFrom(new float[5]), "source=5, expected=4");
      assertRefused(() -> buffer.copyTo(new float[0]), "target=0, expected=4");
      assertRefused(() -> buffer.copyFrom(ByteBuffer.allocate(4)), "source=4, expected=16");
      assertRefused(() -> buffer.copyTo(FloatBuffer.allocate(4).asReadOnlyBuffer()), "read-only");
      assertThrows(NullPointerException.class, () -> buffer.copyFrom((float[]) null));
      assertThrows(NullPointerException.class, () -> buffer.copyTo((Buffer) null));
      float[] unchanged = new float[4];
      buffer.copyTo(unchanged);
      assertArrayEquals(new float[] {1, 2, 3, 4}, unchanged);
    }
  }

  @Test
  void rejectsInvalidCounts() {
    assertThrows(NullPointerException.class, () -> device.allocate(null, 1));
    assertRefused(() -> device.allocate(DataType.INT64, -1), "count=-1");
    assertRefused(() -> device.allocate(DataType.INT64, Long.MAX_VALUE / 4), "too large");
  }

  @Test
  void keepsSeveralBuffersApart() {
    List<DeviceBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      DeviceBuffer buffer = device.allocate(DataType.INT32, 100 + i);
      buffer.copyFrom(Numbers.of(DataType.INT32, i, 0, 100 + i));
      buffers.add(buffer);
    }
    for (int i = 0; i < 50; i++) {
      assertEquals(Numbers.of(DataType.INT32, i, 0, 100 + i), download(buffers.get(i)));
      buffers.get(i).close();
    }
  }

  @Test
  void rejectsUseAfterClose() {
    DeviceBuffer buffer = device.allocate(DataType.FLOAT32, 4);
    DeviceBuffer slice = buffer.slice(1, 2);
    assertFalse(buffer.isClosed());
    buffer.close();
    buffer.close();
    assertTrue(buffer.isClosed());
    assertTrue(slice.isClosed());
    assertThrows(IllegalStateException.class, () -> buffer.copyFrom(new float[4]));
    assertThrows(IllegalStateException.class, () -> buffer.copyTo(new float[4]));
    assertThrows(IllegalStateException.class, () -> buffer.slice(0, 1));
    assertThrows(IllegalStateException.class, () -> slice.copyTo(new float[2]));
    slice.close();
  }

  @Test
  void closingSliceKeepsWholeBuffer() {
    try (DeviceBuffer buffer = device.allocate(DataType.INT32, 4)) {
      DeviceBuffer slice = buffer.slice(1, 2);
      slice.close();
      assertTrue(slice.isClosed());
      buffer.copyFrom(new int[] {1, 2, 3, 4});
      assertEquals(2, download(buffer.slice(1, 2)).getInt(0));
    }
  }

  @Test
  void rejectsUseAfterDeviceIsClosed() {
    DeviceBuffer buffer = device.allocate(DataType.INT32, 4);
    device.close();
    device.close();
    assertTrue(buffer.isClosed());
    assertThrows(IllegalStateException.class, () -> buffer.copyTo(new int[4]));
    assertThrows(IllegalStateException.class, () -> device.allocate(DataType.INT32, 4));
    buffer.close();
  }

  private static ByteBuffer download(DeviceBuffer buffer) {
    ByteBuffer target = Numbers.memory(buffer.type(), (int) buffer.count());
    buffer.copyTo(target);
    return target;
  }

  private static void assertRefused(Runnable call, String part) {
    IllegalArgumentException e = assertThrows(IllegalArgumentException.class, call::run);
    assertTrue(e.getMessage().contains(part), e.getMessage());
  }
}
